// The address of the present page: the part after #.

/** In a frame without an address of its own, such as a notebook's, the address is kept here. */
const framed = location.protocol === "about:";
let kept = "";

export const address = () => (framed ? kept : location.hash.slice(1));

/** Keeps the address of the page as it is now, without opening it again. @param path With #. */
export function keepAddress(path) {
  if (framed) kept = path.slice(1);
  else history.replaceState(history.state, "", path);
}

/** Calls `open` whenever another page is asked for. */
export function onAddress(open) {
  window.addEventListener("hashchange", open);
  if (!framed) return;
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#/"]');
    if (!link) return;
    event.preventDefault();
    kept = link.getAttribute("href").slice(1);
    open();
  });
}
