// A page that is drawn again whenever its runs change.

/**
 * @param api With `watch`. @param concerns Whether changes of runs with these names concern the page.
 * @param fetched Gets the data of the page. @param draw Draws them; it hands each of its charts to `keep`, its second
 *   argument, which ends them before the next drawing.
 * @returns A function that ends it.
 */
export async function follow(api, concerns, fetched, draw) {
  let over = false;
  let charts = [];
  const clear = () => {
    for (const each of charts) each.destroy();
    charts = [];
  };
  const keep = (chart) => {
    charts.push(chart);
    return chart;
  };
  const load = async () => {
    const found = await fetched();
    if (over) return;
    clear();
    draw(found, keep);
  };
  await load();
  const unwatch = api.watch((names) => concerns(names) && load());
  return () => {
    over = true;
    unwatch();
    clear();
  };
}
