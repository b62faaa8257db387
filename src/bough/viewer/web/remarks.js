// Sentences that a reader of a page has to know, such as what exported pages leave out.

import { el } from "./dom.js";

export const remarks = (notes = []) => notes.map((note) => el("p", { class: "remark" }, note));
