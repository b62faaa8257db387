// The routes of the page, in the part of the address after #.

import { api } from "./api.js";
import { el } from "./dom.js";
import { address, onAddress } from "./place.js";

const ROUTES = [
  [/^\/?$|^\/runs$/, "runs", []],
  [/^\/run\/([^/]+)$/, "run", ["run"]],
  [/^\/run\/([^/]+)\/health$/, "health", ["run"]],
  [/^\/run\/([^/]+)\/rewards$/, "rewards", ["run"]],
  [/^\/run\/([^/]+)\/find$/, "find", ["run"]],
  [/^\/run\/([^/]+)\/tree\/([^/]+)$/, "tree", ["run", "tree"]],
];
/** Where exported pages begin. */
const START = document.documentElement.dataset.start?.slice(1) ?? "";
const main = document.querySelector("main");
let end = () => {};
let shown = 0;

async function open() {
  const [path, query = ""] = (address() || START).split("?", 2);
  shown += 1;
  const mine = shown;
  end();
  end = () => {};
  main.replaceChildren(el("p", { class: "quiet", role: "status" }, "…"));
  try {
    const found = ROUTES.map(([form, view, names]) => [path.match(form), view, names]).find(([match]) => match);
    if (!found) throw new Error(`There is no page ${path}.`);
    const [match, view, names] = found;
    const params = Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(match[at + 1])]));
    crumbs(params, view);
    document.title = [params.tree, params.run, "Bough"].filter(Boolean).join(" · ");
    const { show } = await import(`./views/${view}.js`);
    const root = el("div", { class: `view view-${view}` });
    // In the page before it is filled: a view measures its size and reads the colours of the style sheet.
    main.replaceChildren(root);
    const done = await show(root, { ...params, query }, api);
    if (mine !== shown) {
      done?.();
      return;
    }
    end = done ?? end;
  } catch (error) {
    if (mine === shown) main.replaceChildren(el("p", { class: "bad", role: "alert" }, error.message));
  }
}

function crumbs({ run, tree }, view) {
  const base = run && `#/run/${encodeURIComponent(run)}`;
  const link = (href, words, name) => el("a", { href, "aria-current": name === view ? "page" : null }, words);
  document.querySelector("#crumbs").replaceChildren(
    link("#/runs", "Runs", "runs"),
    ...(run ? [link(base, run, "run"), link(`${base}/health`, "Health", "health"), link(`${base}/rewards`, "Rewards", "rewards"), link(`${base}/find`, "Episodes", "find")] : []),
    ...(tree ? [el("a", { href: `${base}/tree/${tree}`, "aria-current": "page" }, `Tree ${tree}`)] : []),
  );
}

/** Null where the browser denies it, as in the frame of a notebook. */
function storage() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

function theme() {
  const kept = storage()?.getItem("theme");
  if (kept) document.documentElement.dataset.theme = kept;
  document.querySelector("#theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark";
    storage()?.setItem("theme", document.documentElement.dataset.theme);
  });
}

theme();
onAddress(open);
open();
