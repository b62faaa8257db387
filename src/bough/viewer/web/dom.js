// Elements from data. Text becomes text nodes: nothing that a model wrote is read as markup.

/** @param name Tag. @param props Attributes, `on...` handlers, `dataset`; false and null are left out. @param children Nodes or texts. */
export function el(name, props = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") element.className = value;
    else if (key === "dataset") Object.assign(element.dataset, value);
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element) element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** Replaces what a box has. An element with the focus hands it to the new one with the same `data-key`. */
export function redraw(box, ...children) {
  const { activeElement } = document;
  const key = box.contains(activeElement) ? activeElement.dataset.key : undefined;
  box.replaceChildren(...children);
  if (key !== undefined) box.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}
