/* Load the page again when the records change. Only the server of the preview adds this script. */
"use strict";

(() => {
  let known = null;

  pages.version = (now) => {
    if (known !== null && known !== now) location.reload();
    known = now;
  };

  const ask = () => {
    const script = pages.h("script", {
      src: `version.js?${Date.now()}`,
      onload: () => script.remove(),
      onerror: () => script.remove(),
    });
    document.head.append(script);
  };

  ask();
  setInterval(ask, 2000);
})();
