/* The columns and rows of the leaderboard, and the filters. It draws nothing.
   `columns` declares each column. `KINDS` declares the format of each kind of value. */
"use strict";

pages.rows = (() => {
  const { points, seconds, price, short, parameters } = formats;

  /* The format of each kind of value on the page, in a file and at an axis, and the function that finds the best. */
  /** @type {Record<ColumnKind, KindOfColumn>} */
  const KINDS = {
    score: { text: points, file: (value) => points(value), tick: (value) => points(value), best: Math.max },
    difference: {
      text: (value) => `${value > 0 ? "+" : ""}${points(value)}`,
      file: (value) => points(value),
      tick: (value) => points(value),
      best: Math.max,
    },
    share: { text: (value) => `${points(value, 1)} %`, file: String, tick: (value) => `${short(100 * value)} %` },
    harm: {
      text: (value) => `${points(value, 1)} %`,
      file: String,
      tick: (value) => `${short(100 * value)} %`,
      best: Math.min,
    },
    seconds: { text: seconds, file: String, tick: (value) => `${short(value)} s`, best: Math.min },
    dollars: { text: price, file: String, tick: (value) => (value ? `$${short(value)}` : "free"), best: Math.min },
    count: { text: short, file: String, tick: (value) => (value ? short(value) : "none"), best: Math.min },
    parameters: { text: parameters, file: String, tick: parameters },
    text: { text: (value) => pages.visible(value), file: String, tick: String, isText: true },
  };

  const ONE_RUN = "one run"; // of a system whose next run can give other scores

  /* Return what the tests of a system's pairs say, in words. */
  /** @param {Mark} mark */
  const counts = (mark) => `better than ${mark.better}, worse than ${mark.worse}`;

  /* Return the mark of a row: its letters, or else the counts of its pairs. */
  /** @param {Mark | null | undefined} mark */
  const markOf = (mark) => (mark ? mark.letters || counts(mark) : "");

  /* Return a sentence on how the best system compares with the others, counted from its pairs; "" if it is alone. */
  /** @param {Mark} mark */
  function peers({ better, alike }) {
    const others = "run here or verified";
    if (alike)
      return `${formats.counted(alike, "other system")} ${others} cannot be distinguished from it with these queries.`;
    return better ? `It differs significantly from all other systems ${others}.` : "";
  }

  /* Return a score without an interval; null if it is not known. */
  /** @type {(value: number | null | undefined) => Score | null} */
  const bare = (value) => (value === null || value === undefined ? null : { value, low: null, high: null });

  const mean = (values) =>
    values.length && values.every((value) => value !== null) ? values.reduce((a, b) => a + b, 0) / values.length : null;

  /**
   * Return the columns of a set of datasets: averages first, then for each task its mean and its datasets.
   * A column of scores has `members`. A column of another kind has `value`, a function of the row:
   * { id: "llm", title: "LLM", label: "LLM", group: "Parts", kind: "text", value: (row) => row.llm || null }
   * @param {Site} site
   * @param {DatasetSet} set
   * @returns {Column[]}
   */
  function columns(site, set) {
    const numbers = set.datasets;
    const apart = numbers.filter((number) => site.datasets[number].apart);
    /** @type {Column[]} */
    const made = [];
    const whole = !set.missing.length; // otherwise no mean is shown
    const labels = set.overlays.length ? `, ${pages.sets.kind(set)}` : "";
    if (numbers.length > 1 || !whole) {
      made.push({
        id: "average",
        title: `Average${labels}`,
        label: "Average",
        group: "All",
        kind: "score",
        members: whole ? numbers : [],
      });
      if (whole && apart.length && apart.length < numbers.length) {
        const [names, shorts] = ["name", "short"].map((field) =>
          apart.map((number) => site.datasets[number][field]).join(", "),
        );
        made.push({
          id: "without",
          title: `Without ${names}`,
          label: `w/o ${shorts}`,
          group: "All",
          kind: "score",
          members: numbers.filter((number) => !apart.includes(number)),
        });
      }
    }
    const tasks = [...new Set(numbers.map((number) => site.datasets[number].task))];
    for (const task of tasks) {
      const members = numbers.filter((number) => site.datasets[number].task === task);
      if (whole && tasks.length > 1 && members.length > 1)
        made.push({ id: `task ${task}`, title: task, label: "Mean", group: task, kind: "score", members });
      for (const number of members) {
        const { name, short } = site.datasets[number];
        made.push({
          id: name,
          title: name,
          label: short,
          group: task,
          kind: "score",
          members: [number],
          dataset: number,
        });
      }
    }
    if (made.length) made[0].main = true;
    return [...made, ...aspectColumns(site, set)];
  }

  /* Return the columns of the measures of aspects, if a system of the set has them. */
  /** @type {(site: Site, set: DatasetSet) => Column[]} */
  function aspectColumns(site, set) {
    const number = site.sets.indexOf(set);
    if (!site.systems.some((system) => system.aspects?.[number])) return [];
    const short = (family) =>
      family.replace("weighted-alpha-nDCG", "by weight").replace("alpha", "α").replace("Recall", "Rec");
    return site.aspect_measures.map((title, i) => ({
      id: title,
      title,
      label: short(title.split("@")[0]),
      group: `Aspects, @${title.split("@")[1]}`,
      kind: "score",
      about: "The mean over the datasets whose relevant documents belong to aspects of an answer.",
      value: (row) => row.aspects?.[number]?.[i] ?? null,
    }));
  }

  /**
   * Return the rows: systems run here first, then published ones. Each has a value for every column, and its rank.
   * @param {Site} site
   * @param {number} setNumber
   * @param {string} measure
   * @param {Column[]} made
   * @returns {Promise<Row[]>}
   */
  async function all(site, setNumber, measure, made) {
    const set = site.sets[setNumber];
    const headline = measure === site.measure;
    const recomputed = headline ? null : await recompute(site, set, measure);
    const ours = site.systems.map((system, number) => {
      const figures = recomputed ? recomputed(number) : system.figures;
      const average = headline && set.datasets.length > 1 ? system.averages[setNumber] : null;
      const from = system.entry ? "submitted" : "run here";
      const row = { ...system, number, ours: true, from, mark: headline ? system.marks[setNumber] : null };
      return { ...row, cells: cells(made, row, figures, average) };
    });
    const published = (headline ? site.published : []).map((system) => {
      /** @type {(Score | null)[]} */
      const figures = system.values.map(bare);
      /** @type {Score | null} */
      const average = set.name === "R2MED" ? bare(system.average) : null;
      const row = { ...system, ours: false, from: "published", mark: null };
      return { ...row, cells: cells(made, row, figures, average) };
    });
    const hasScore = (row) => row.cells.some((cell, i) => made[i].kind === "score" && cell.value !== null);
    const rows = /** @type {Row[]} */ ([...ours, ...published].filter(hasScore));
    const main = (row) => row.cells[0].value;
    rank(rows.filter((row) => main(row) !== null));
    return rows;
  }

  /* Entries without a verdict come after all others, whatever they state. */
  const unverifiedLast = (a, b) => Number(Boolean(a.unverified)) - Number(Boolean(b.unverified));

  /* Rank the rows by their first score, entries that are not verified last. Rows with the same shown score share a rank. */
  function rank(rows) {
    const ordered = [...rows].sort((a, b) => unverifiedLast(a, b) || b.cells[0].value - a.cells[0].value);
    ordered.forEach((row, position) => {
      const above = ordered[position - 1];
      row.rank =
        above &&
        !unverifiedLast(above, row) &&
        formats.points(above.cells[0].value) === formats.points(row.cells[0].value)
          ? above.rank
          : position + 1;
    });
  }

  /**
   * Return a row's value for each column.
   * @param {Column[]} made
   * @param {Omit<Row, "cells">} row
   * @param {(Score | null)[]} figures the scores of the row, by dataset
   * @param {Score | null} average the score of the main column with its interval, if it is known
   * @returns {Cell[]}
   */
  const cells = (made, row, figures, average) =>
    made.map((column) => {
      if (column.value) {
        const { low, high } = column.interval?.(row) ?? { low: null, high: null };
        return { value: /** @type {any} */ (column.value(row)), low, high };
      }
      const figure = column.dataset === undefined ? (column.main ? average : null) : figures[column.dataset];
      const value = figure
        ? figure.value
        : mean((column.members ?? []).map((number) => figures[number]?.value ?? null));
      return { value, low: figure?.low ?? null, high: figure?.high ?? null };
    });

  /* Load the ranks of relevant documents of each dataset; null for a dataset without systems, which has no file. */
  /** @type {(site: Site, set: DatasetSet) => Promise<(GoldFile | null)[]>} */
  const goldFiles = (site, set) =>
    Promise.all(
      set.datasets.map((number) =>
        site.systems.some((system) => system.figures[number]) ? pages.load(`gold/${number}`) : null,
      ),
    );

  /* Return system number -> scores by another measure, from the ranks of relevant documents. */
  async function recompute(site, set, measure) {
    const gold = await goldFiles(site, set);
    return (system) => {
      const figures = [];
      set.datasets.forEach((number, i) => {
        figures[number] = bare(gold[i] && pages.measure.mean(measure, gold[i], system));
      });
      return figures;
    };
  }

  /* --- filters: a name in the address -> what it offers, and which rows pass -------------------------------------- */

  const SIZES = [
    { value: "none", label: "no model" },
    { value: "1", label: "up to 1B" },
    { value: "8", label: "up to 8B" },
    { value: "40", label: "up to 40B" },
    { value: "more", label: "over 40B" },
  ];
  const DOLLARS = [
    { value: "0", label: "free" },
    { value: "1", label: "up to $1" },
    { value: "10", label: "up to $10" },
    { value: "100", label: "up to $100" },
  ];
  const perThousand = (row) => (row.cost && row.cost.dollars !== null ? 1000 * row.cost.dollars : null);

  /* The costs that quality can be drawn against. */
  /** @type {{ id: string, title: string, kind: ColumnKind, value: (row: Row) => number | null }[]} */
  const COSTS = [
    { id: "dollars", title: "dollars per 1,000 queries", kind: "dollars", value: perThousand },
    { id: "tokens", title: "LLM tokens per query", kind: "count", value: (row) => row.cost?.tokens ?? null },
    { id: "seconds", title: "mean seconds per query", kind: "seconds", value: (row) => row.cost?.seconds ?? null },
    { id: "size", title: "parameters of the largest model", kind: "parameters", value: (row) => row.size },
  ];

  /* Return a filter by a field of the rows. It offers the values that the rows have. */
  /** @type {(name: "from" | "kind" | "llm", label: string) => RowFilter} */
  const byValue = (name, label) => ({
    name,
    label,
    options: (rows) => parts.asOptions([...new Set(rows.map((row) => row[name]))].filter(Boolean).sort()),
    passes: (row, wanted) => row[name] === wanted,
  });

  /** @type {RowFilter[]} */
  const FILTERS = [
    byValue("from", "From"),
    byValue("kind", "Kind"),
    byValue("llm", "LLM"),
    {
      name: "size",
      label: "Largest model",
      options: () => SIZES,
      passes: (row, wanted) =>
        row.size !== null &&
        (wanted === "none" ? row.size === 0 : wanted === "more" ? row.size > 40 : row.size <= Number(wanted)),
    },
    {
      name: "cost",
      label: "$ per 1,000 queries",
      options: () => DOLLARS,
      passes: (row, wanted) => (perThousand(row) ?? Infinity) <= Number(wanted),
    },
  ];

  function passing(rows, params) {
    const words = (params.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const asked = FILTERS.filter(({ name }) => params.get(name));
    return rows.filter((row) => {
      const text = `${row.name} ${row.kind} ${row.llm} ${row.reported_by || row.entry}`.toLowerCase();
      return (
        words.every((word) => text.includes(word)) && asked.every(({ name, passes }) => passes(row, params.get(name)))
      );
    });
  }

  /**
   * Sort by a column or by name. Rows without a value, and entries that are not verified, come last in both directions.
   * @param {Row[]} rows
   * @param {Column[]} made
   * @param {string} by
   * @param {boolean} upwards
   */
  function sorted(rows, made, by, upwards) {
    const index = made.findIndex((column) => column.id === by);
    const value = (row) => (index < 0 ? row.name.toLowerCase() : row.cells[index].value);
    const sign = upwards ? 1 : -1;
    return [...rows].sort((a, b) => {
      if (unverifiedLast(a, b)) return unverifiedLast(a, b);
      const [x, y] = [value(a), value(b)];
      if (index >= 0 && a.last !== b.last) return Number(a.last ?? false) - Number(b.last ?? false);
      if (x === null || y === null) return Number(x === null) - Number(y === null);
      return (x < y ? -1 : x > y ? 1 : 0) * sign || (a.rank || Infinity) - (b.rank || Infinity);
    });
  }

  /* Return true if a column is sorted upwards first: names, and values that are better when smaller. */
  function startsUpwards(made, by) {
    const column = made.find((each) => each.id === by);
    return !column || KINDS[column.kind].isText || KINDS[column.kind].best === Math.min;
  }

  return {
    KINDS,
    COSTS,
    ONE_RUN,
    counts,
    markOf,
    peers,
    columns,
    all,
    cells,
    rank,
    goldFiles,
    FILTERS,
    passing,
    sorted,
    startsUpwards,
    perThousand,
  };
})();
