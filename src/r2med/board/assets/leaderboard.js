"use strict";

board.page("leaderboard", {
  title: "Leaderboard",
  label: "Leaderboard",
  show(main) {
    main.append(board.h("h1", null, "Leaderboard"));
  },
});
