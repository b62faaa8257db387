// The colours of the drawing, from the page's style sheet.

const NAMES = ["paper", "ink", "quiet", "line", "neutral", "accent", "positive", "negative", "high", "good", "bad"];

/** The colours as [red, green, blue], by name. */
export function themeOf(element) {
  const style = getComputedStyle(element);
  const theme = Object.fromEntries(NAMES.map((name) => [name, channels(style.getPropertyValue(`--tree-${name}`))]));
  return { ...theme, font: style.fontFamily, darkInk: [22, 26, 31], lightInk: [250, 251, 252] };
}

function channels(text) {
  const hex = text.trim().replace("#", "");
  return [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) || 0);
}
