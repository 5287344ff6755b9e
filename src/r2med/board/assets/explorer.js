"use strict";

board.page("explorer", {
  title: "Explorer",
  label: "Explorer",
  show(main) {
    main.append(board.h("h1", null, "Explorer"));
  },
});
