"use strict";

board.page("reproduce", {
  title: "Reproduce",
  label: "Reproduce",
  show(main) {
    main.append(board.h("h1", null, "Reproduce"));
  },
});
