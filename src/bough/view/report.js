"use strict";

for (const chart of document.querySelectorAll(".chart")) {
  const data = JSON.parse(chart.querySelector("script").textContent);
  const svg = chart.querySelector("svg");
  const values = [...chart.querySelectorAll(".legend b")];
  const step = chart.querySelector(".at");
  const line = svg.querySelector(".cursor line");
  const dots = [...svg.querySelectorAll(".cursor circle")];
  const steps = [...new Set(data.series.flatMap((each) => each.x))].sort((a, b) => a - b);
  const [left, right, top, floor] = data.box;
  const across = (x) => left + ((x - data.x[0]) / (data.x[1] - data.x[0])) * (right - left);
  const up = (y) => floor - ((y - data.y[0]) / (data.y[1] - data.y[0])) * (floor - top);
  let at = steps.length - 1;

  const write = () => {
    step.textContent = "step " + steps[at];
    line.setAttribute("x1", across(steps[at]));
    line.setAttribute("x2", across(steps[at]));
    data.series.forEach((each, i) => {
      // The newest value at or before the step: held-out success is measured now and then.
      const last = each.x.filter((x) => x <= steps[at]).length - 1;
      values[i].textContent = last < 0 ? "\u2013" : each.text[last];
      dots[i].style.display = last < 0 ? "none" : "";
      if (last >= 0) {
        dots[i].setAttribute("cx", across(each.x[last]));
        dots[i].setAttribute("cy", up(each.y[last]));
      }
    });
  };
  const show = (to) => {
    at = Math.max(0, Math.min(steps.length - 1, to));
    svg.classList.add("on");
    write();
  };
  const hide = () => {
    at = steps.length - 1;
    write();
    svg.classList.remove("on");
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    const distance = steps.map((each) => Math.abs(across(each) - x));
    show(distance.indexOf(Math.min(...distance)));
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) {
      event.preventDefault();
      show(at + by);
    }
  });
}

for (const button of document.querySelectorAll(".unfold")) {
  button.addEventListener("click", () => {
    const open = button.textContent === "unfold all";
    for (const each of button.closest(".group").querySelectorAll("details")) each.open = open;
    button.textContent = open ? "fold all" : "unfold all";
  });
}

const folded = [];
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details:not([open])")) {
    each.open = true;
    folded.push(each);
  }
});
addEventListener("afterprint", () => {
  for (const each of folded.splice(0)) each.open = false;
});
