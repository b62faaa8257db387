// Answers that lie in the page, or in files beside it, in place of a server.

import { restored } from "./tree/restored.js";

const parsed = (id) => JSON.parse(document.querySelector(id).textContent);
const answers = new Map(Object.entries(parsed("#answers")));
const files = parsed("#files");
const loading = new Map();

/** Called by the files of answers. */
globalThis.boughAnswers = (found) => {
  for (const [path, answer] of Object.entries(found)) answers.set(path, answer);
};

function load(file) {
  if (!loading.has(file)) {
    loading.set(file, new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = file;
      script.addEventListener("load", resolve);
      script.addEventListener("error", () => reject(new Error(`The file ${file} of these pages is missing.`)));
      document.head.append(script);
    }));
  }
  return loading.get(file);
}

export const api = {
  /** Whether a server answers: it searches texts, applies other credit rules, and plays. */
  live: false,
  async get(path) {
    const [, tree, part, place] = path.match(/^(.*\/tree\/[^/]+)(?:\/(\w+))?(?:\/(\d+))?$/) ?? [];
    if (files[tree]) await load(files[tree]);
    const nodes = place && answers.get(`${tree}/nodes`);
    const found = nodes ? restored(nodes, part, Number(place)) : answers.get(path);
    if (found === undefined) throw new Error("These pages were exported without it: `bough view` shows the whole run.");
    return found;
  },
  async post() {
    throw new Error("These pages were exported: `bough view` plays.");
  },
  watch() {
    return () => {};
  },
};
