"use strict";

board.page("system", {
  title: "System",
  show(main, params) {
    main.append(board.h("h1", null, board.named(params.get("name") || "")));
  },
});
