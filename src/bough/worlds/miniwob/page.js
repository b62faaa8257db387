// Runs in every page before its own scripts: a clock that only actions move, the list of elements, and the actions.
(() => {
  const EPOCH = Date.UTC(2020, 0, 1, 12);
  const FRAME_MS = 16;
  const MOST_CALLBACKS = 20000;
  const MOST_TEXT = 400;
  const OUTSIDE = ["query", "reward-display", "sync-task-cover", "click-canvas", "attention-canvas"];
  const ROLES = { BUTTON: "button", A: "link", SELECT: "select", TEXTAREA: "textarea", IMG: "image" };
  const INPUTS = { checkbox: "checkbox", radio: "radio", button: "button", submit: "button", reset: "button", range: "slider" };
  const SHAPES = ["rect", "circle", "ellipse", "polygon", "path", "line"];

  let now = EPOCH;
  let timers = [];
  let lastTimer = 0;
  let hovered = null;

  const RealDate = Date;
  class Clock extends RealDate {
    constructor(...parts) {
      if (parts.length) super(...parts);
      else super(now);
    }
    static now() {
      return now;
    }
  }
  window.Date = Clock;
  performance.now = () => now - EPOCH;

  const later = (callback, wait, every, rest) => {
    lastTimer += 1;
    timers.push({ id: lastTimer, at: now + wait, every, callback, rest });
    return lastTimer;
  };
  const milliseconds = (wait) => Math.max(0, Number(wait) || 0);
  const cancel = (id) => {
    timers = timers.filter((each) => each.id !== id);
  };
  window.setTimeout = (callback, wait, ...rest) => later(callback, milliseconds(wait), 0, rest);
  window.setInterval = (callback, wait, ...rest) => later(callback, milliseconds(wait), Math.max(1, milliseconds(wait)), rest);
  window.requestAnimationFrame = (callback) => later(() => callback(now - EPOCH), FRAME_MS, 0, []);
  window.clearTimeout = window.clearInterval = window.cancelAnimationFrame = cancel;
  // Libraries draw random names when they load, before an episode has a seed.
  let drawn = 1;
  Math.random = () => {
    drawn = (Math.imul(drawn, 1664525) + 1013904223) >>> 0;
    return drawn / 2 ** 32;
  };
  window.alert = () => undefined;
  window.confirm = () => true;
  window.prompt = () => "";
  window.open = () => null;
  window.print = () => undefined;

  // A form or a link that nothing handles would leave the page.
  window.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (link && !link.getAttribute("href").startsWith("#")) event.preventDefault();
  });

  const advance = (ms) => {
    const end = now + ms;
    for (let calls = 0; calls < MOST_CALLBACKS; calls++) {
      const next = timers.reduce((best, each) => (best === null || each.at < best.at ? each : best), null);
      if (next === null || next.at > end) break;
      now = Math.max(now, next.at);
      if (next.every) next.at = now + next.every;
      else cancel(next.id);
      if (typeof next.callback === "function") next.callback.apply(window, next.rest);
    }
    now = end;
  };

  const tidy = (text) => text.replace(/\s+/g, " ").trim().slice(0, MOST_TEXT);
  const ownText = (element) =>
    tidy([...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join(" "));
  const isText = (element) =>
    element.tagName === "TEXTAREA" || (element.tagName === "INPUT" && !["checkbox", "radio", "button", "submit", "reset", "range", "file", "color", "image", "hidden"].includes(element.type));

  const labelOf = (element) => {
    const label = element.closest("label") || (element.id && document.querySelector(`label[for="${CSS.escape(element.id)}"]`));
    if (label) return tidy(label.textContent);
    const before = element.previousElementSibling;
    if (before && before.tagName === "LABEL") return tidy(before.textContent);
    const after = element.nextSibling;
    if (["checkbox", "radio"].includes(element.type) && after && after.nodeType === Node.TEXT_NODE) return tidy(after.data);
    return "";
  };

  const nameOf = (element) => {
    const hint = () => tidy(element.getAttribute("aria-label") || element.alt || element.title || element.placeholder || element.id || "");
    if (element.tagName === "SELECT") return labelOf(element) || hint();
    if (element.tagName === "INPUT" && INPUTS[element.type] === "button") return tidy(element.value) || hint();
    if (element.tagName === "INPUT" || element.tagName === "TEXTAREA") return labelOf(element) || hint();
    if (element.tagName === "BUTTON" || element.tagName === "A") return tidy(element.textContent) || hint();
    const shown = element instanceof SVGElement ? tidy(element.textContent) : ownText(element);
    return shown || hint() || tidy(typeof element.className === "string" ? element.className : element.getAttribute("class") || "");
  };

  const clickable = (element) => getComputedStyle(element).cursor === "pointer";
  const roleOf = (element) => {
    if (element.tagName === "INPUT") return INPUTS[element.type] || "field";
    if (element.getAttribute("role") === "tab" || element.classList.contains("ui-tabs-anchor")) return "tab";
    if (ROLES[element.tagName]) return ROLES[element.tagName];
    if (SHAPES.includes(element.tagName)) return element.tagName;
    if (!ownText(element)) return "icon";
    return clickable(element) ? "link" : "text";
  };

  // Whether an element is a line of the list: a control, a shape, a text that no control shows, or a small icon.
  const listed = (element) => {
    if (element.tagName === "INPUT") return element.type !== "hidden";
    if (ROLES[element.tagName]) return true;
    if (element.closest("button, a, select, textarea")) return false;
    if (element instanceof SVGElement) return SHAPES.includes(element.tagName) || (element.tagName === "text" && tidy(element.textContent) !== "");
    if (element.tagName === "LABEL" && (element.querySelector("input, select, textarea") || element.htmlFor)) return false;
    if (element.tagName === "LABEL" && element.nextElementSibling && element.nextElementSibling.matches("input, select, textarea")) return false;
    if (ownText(element)) return !only_label(element);
    return element.childElementCount === 0 && clickable(element);
  };
  // Text beside a check box without a label element, in a container of its own.
  const only_label = (element) => element.querySelectorAll(":scope > input[type=checkbox], :scope > input[type=radio]").length > 0;

  const visible = (element) => {
    const box = element.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) return null;
    return getComputedStyle(element).visibility === "hidden" ? null : box;
  };

  const elements = () => {
    const found = [];
    const visit = (element) => {
      if (OUTSIDE.includes(element.id) || ["SCRIPT", "STYLE"].includes(element.tagName)) return;
      if (getComputedStyle(element).display === "none") return;
      if (element !== document.body && listed(element) && visible(element)) found.push(element);
      if (!["SELECT", "BUTTON"].includes(element.tagName)) for (const child of element.children) visit(child);
    };
    visit(document.body);
    return found;
  };

  const boxOf = (element) => {
    const box = element.getClientRects()[0] || element.getBoundingClientRect();
    return [Math.ceil(box.left), Math.ceil(box.top), Math.max(Math.ceil(box.left), Math.floor(box.right) - 1), Math.max(Math.ceil(box.top), Math.floor(box.bottom) - 1)];
  };

  const optionTexts = (select) => [...select.options].map((option) => tidy(option.textContent));
  const describe = (element) => {
    const row = { role: roleOf(element), name: nameOf(element), box: boxOf(element), flags: [] };
    if (isText(element) || row.role === "slider") row.value = element.value;
    if (element.tagName === "SELECT") {
      row.options = optionTexts(element);
      row.value = [...element.selectedOptions].map((option) => tidy(option.textContent)).join(", ");
    }
    if (element.checked && ["checkbox", "radio"].includes(row.role)) row.flags.push("checked");
    if (element.disabled) row.flags.push("disabled");
    if (element.getAttribute("aria-selected") === "true" || element.parentElement.getAttribute("aria-selected") === "true") row.flags.push("selected");
    if (element.getAttribute("aria-expanded") === "true") row.flags.push("expanded");
    if (element === document.activeElement) row.flags.push("focused");
    return row;
  };

  const hash = (text) => {
    let [one, two] = [0x811c9dc5, 0x1b873593];
    for (let at = 0; at < text.length; at++) {
      one = Math.imul(one ^ text.charCodeAt(at), 0x01000193);
      two = Math.imul(two ^ text.charCodeAt(at), 0x85ebca6b) ^ (two >>> 13);
    }
    return (one >>> 0).toString(16) + (two >>> 0).toString(16);
  };
  // All that the page holds: its HTML without counters of episodes and of clicks, values, focus, caret, and scrolling.
  const caretOf = (element) => (isText(element) && element.selectionStart !== null ? `${element.selectionStart} ${element.selectionEnd}` : "");
  const pageHash = () => {
    const parts = [];
    const everything = [...document.body.querySelectorAll("*")].filter((each) => !OUTSIDE.includes(each.id) && !each.closest("#reward-display"));
    for (const each of everything) {
      const attributes = [...each.attributes].filter((one) => !one.name.startsWith("data-wob") && one.name !== "data-tampered");
      parts.push(each.tagName, ...attributes.map((one) => one.name + "=" + one.value), ownText(each));
      if (each.value !== undefined) parts.push("value=" + each.value);
      if (each === document.activeElement && caretOf(each)) parts.push("caret " + caretOf(each));
      if (each.checked || each.selected) parts.push("on");
      if (each === document.activeElement) parts.push("focused");
      if (each.scrollTop) parts.push("scrolled " + each.scrollTop);
    }
    return hash(parts.join("\n"));
  };

  const goalOf = (goal) => (typeof goal === "string" ? goal : goal.utterance || "");
  const read = () => ({
    goal: goalOf(core.getUtterance()),
    elements: elements().map(describe),
    page: pageHash(),
    done: WOB_DONE_GLOBAL,
    reward: WOB_RAW_REWARD_GLOBAL,
  });

  // An element that is hidden loses the focus with the next frame; here it does so at once.
  const dropHiddenFocus = () => {
    const focused = document.activeElement;
    if (focused && focused !== document.body && !focused.getClientRects().length) focused.blur();
  };
  // Without a focus the tab key begins at the top. Chromium would begin where the focus was last, also in an earlier episode.
  const top_of_page = document.createElement("span");
  top_of_page.tabIndex = 0;
  for (const type of ["focus", "blur", "focusin", "focusout"])
    window.addEventListener(type, (event) => event.target === top_of_page && event.stopImmediatePropagation(), true);
  const tabFromTop = () => {
    if (document.activeElement && document.activeElement !== document.body) return;
    document.body.prepend(top_of_page);
    top_of_page.focus({ preventScroll: true });
    top_of_page.blur();
    top_of_page.remove();
  };
  const scrollBack = () => {
    window.scrollTo(0, 0);
    for (const element of document.body.querySelectorAll("*")) {
      if (element.scrollTop) element.scrollTop = 0;
      if (element.scrollLeft) element.scrollLeft = 0;
    }
  };
  // Lets the events that the browser queued reach the page, and its pictures arrive.
  const settle = async () => {
    dropHiddenFocus();
    await queuedEvents();
    dropHiddenFocus();
    const missing = [...document.images].filter((picture) => picture.src && !picture.complete);
    await Promise.all(missing.map((picture) => picture.decode().catch(() => undefined)));
  };
  const queuedEvents = () =>
    new Promise((resolve) => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        channel.port1.close();
        resolve();
      };
      channel.port2.postMessage(0);
    });

  const pointer = (target, type, [x, y], related = null) => {
    const Kind = type.startsWith("pointer") ? PointerEvent : MouseEvent;
    const bubbles = !type.endsWith("enter") && !type.endsWith("leave");
    const down = type.endsWith("down");
    return target.dispatchEvent(
      new Kind(type, { bubbles, cancelable: true, composed: true, view: window, clientX: x, clientY: y, detail: 1, button: 0, buttons: down ? 1 : 0, relatedTarget: related, pointerId: 1, pointerType: "mouse", isPrimary: true })
    );
  };
  const hover = (target, at) => {
    if (hovered === target) return;
    if (hovered && hovered.isConnected) for (const type of ["pointerout", "mouseout", "mouseleave"]) pointer(hovered, type, at, target);
    for (const type of ["pointerover", "pointerenter", "mouseover", "mouseenter"]) pointer(target, type, at, hovered);
    hovered = target;
    pointer(target, "mousemove", at);
  };
  const focusable = (element) => {
    const found = element.closest("input, select, textarea, button, a[href], [tabindex], label");
    return found && found.tagName === "LABEL" ? found.control : found;
  };
  const press = (target, at) => {
    hover(target, at);
    pointer(target, "pointerdown", at);
    if (pointer(target, "mousedown", at)) {
      const wanted = focusable(target);
      if (wanted) wanted.focus({ preventScroll: true });
      else if (document.activeElement) document.activeElement.blur();
    }
    if (!target.isConnected) return;
    pointer(target, "pointerup", at);
    pointer(target, "mouseup", at);
    pointer(target, "click", at);
  };
  const changed = (element) => {
    element.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertText" }));
    element.dispatchEvent(new Event("change", { bubbles: true }));
  };

  // A date or a time as the field stores it, of the form in which a person types it.
  const spelled = (type, text) => {
    const date = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/.exec(text);
    if (type === "date" && date) return `${date[3]}-${date[1].padStart(2, "0")}-${date[2].padStart(2, "0")}`;
    const time = /^(\d{1,2}):(\d{2})\s*([AP])M$/i.exec(text);
    if (type !== "time" || !time) return text;
    const hour = (Number(time[1]) % 12) + (time[3].toUpperCase() === "P" ? 12 : 0);
    return `${String(hour).padStart(2, "0")}:${time[2]}`;
  };

  const ACTIONS = {
    click(element) {
      element.scrollIntoView({ block: "nearest", inline: "nearest" });
      const [left, top, right, bottom] = boxOf(element);
      const at = [(left + right) / 2, (top + bottom) / 2];
      const top_element = document.elementFromPoint(...at);
      press(top_element && element.contains(top_element) ? top_element : element, at);
      return "";
    },
    type(element, text) {
      if (!isText(element)) return "not a field";
      if (element.disabled || element.readOnly) return "the field is disabled";
      element.scrollIntoView({ block: "nearest", inline: "nearest" });
      element.focus({ preventScroll: true });
      if (document.activeElement !== element) return "";  // a page may react to the focus
      const key = text.slice(-1) || "Backspace";
      element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      const before = element.value;
      const kind = element.tagName === "TEXTAREA" ? HTMLTextAreaElement : HTMLInputElement;
      Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(element, spelled(element.type, text));
      if (text && !element.value) {
        element.value = before;
        return "the field does not take this text";
      }
      changed(element);
      element.dispatchEvent(new KeyboardEvent("keyup", { key, bubbles: true }));
      return "";
    },
    select(element, text) {
      if (element.tagName !== "SELECT") return "not a select";
      if (element.disabled) return "the select is disabled";
      const place = optionTexts(element).indexOf(tidy(text));
      if (place < 0) return "no such option";
      element.focus({ preventScroll: true });
      if (element.multiple) element.options[place].selected = !element.options[place].selected;
      else element.selectedIndex = place;
      changed(element);
      return "";
    },
  };

  // Pictures of style sheets change the layout when they arrive, so they are loaded before the first episode.
  const pictures = [];
  const loadPictures = () => {
    // Those of other files are backgrounds, which have no size.
    for (const sheet of [...document.styleSheets].filter((each) => !each.href))
      for (const rule of sheet.cssRules)
        for (const [, address] of rule.cssText.matchAll(/url\("?([^")]+)"?\)/g)) {
          const picture = new Image();
          picture.src = new URL(address, document.baseURI).href;
          pictures.push(picture);
        }
    return Promise.all(pictures.map((picture) => picture.decode().catch(() => undefined)));
  };

  window.__bough = {
    ready: () => loadPictures().then(() => true),
    async reset(seed, max_time) {
      if (document.activeElement) document.activeElement.blur();
      timers = [];
      now = EPOCH;
      hovered = null;
      if (window.jQuery) window.jQuery.fx.off = true;
      core.countdownTimer = () => undefined;
      core.EPISODE_MAX_TIME = max_time;
      scrollBack();
      Math.seedrandom(seed);
      core.startEpisodeReal();
      await settle();
      tabFromTop();
      return read();
    },
    async act(verb, ref, text, wait) {
      const element = elements()[ref - 1];
      const problem = element ? ACTIONS[verb](element, text) : "no such element";
      if (problem) return { problem };
      return await this.wait(wait);
    },
    async point(x, y, wait) {
      const element = document.elementFromPoint(x, y);
      if (!element || !element.closest("#wrap, .ui-dialog, .ui-menu, .ui-autocomplete, .ui-datepicker")) return { problem: "no element there" };
      press(element, [x, y]);
      return await this.wait(wait);
    },
    async wait(ms) {
      await settle();
      advance(ms);
      await settle();
      tabFromTop();
      return read();
    },
    read,
  };

  document.addEventListener("DOMContentLoaded", () => {
    const style = document.createElement("style");
    style.textContent = "*, *::before, *::after { transition: none !important; animation: none !important; caret-color: transparent !important; }";
    document.head.appendChild(style);
  });
})();
