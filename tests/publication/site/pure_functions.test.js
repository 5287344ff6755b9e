/* The scripts' functions that draw nothing, by node's own runner: node --test FILE. The pages load them as classic
   scripts; so does this. */
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const test = require("node:test");
const vm = require("node:vm");

const ROOMS = path.join(__dirname, "../../../src/r2med");

// What draws is not tested here: only the names that the scripts take from each other while they are loaded.
globalThis.shell = { h: () => null, visible: String };
globalThis.pages = { h: () => null, svg: () => null, named: String, visible: String };
globalThis.location = { hash: "#/leaderboard" };
globalThis.document = { addEventListener: () => {} };
const WEB = ["formats", "marks", "parts"].map((name) => `foundation/web/assets/${name}.js`);
const SITE = ["measure", "chart", "rows", "export", "ranking"].map((name) => `publication/site/assets/${name}.js`);
for (const file of [...WEB, ...SITE]) {
  vm.runInThisContext(fs.readFileSync(path.join(ROOMS, file), "utf8"), { filename: file });
}
const { measure, chart, rows, exports: files, ranking } = pages;

const near = (value, expected) => assert.ok(Math.abs(value - expected) < 1e-12, `${value} is not ${expected}`);

test("numbers are written in one way", () => {
  assert.deepEqual(
    [0.27591, 1, null].map((value) => formats.points(value)),
    ["27.59", "100.00", "–"],
  );
  assert.equal(formats.points(0.27591, 1), "27.6");
  const times = [null, 0, 0.0123, 0.9994, 3.214, 123.4];
  assert.deepEqual(times.map(formats.seconds), ["–", "< 1 ms", "12 ms", "999 ms", "3.21 s", "123 s"]);
  const amounts = [null, 0, 0.0000123, 0.00012, 0.0123, 0.5, 1234];
  assert.deepEqual(amounts.map(formats.dollars), [
    "unknown",
    "$0.00",
    "$0.000012",
    "$0.00012",
    "$0.0123",
    "$0.50",
    "$1234.00",
  ]);
  assert.deepEqual([null, 0, 2].map(formats.price), ["unknown", "free", "$2.00"]);
  assert.deepEqual([0, 0.11, 7.62].map(formats.parameters), ["none", "110M", "7.6B"]);
  assert.equal(formats.counted(1, "query", "queries"), "1 query");
  assert.equal(formats.counted(1234, "passage"), "1,234 passages");
});

test("offsets in characters, as Python counts them, become those of JavaScript", () => {
  const at = marks.units("a𝛽c");
  assert.deepEqual([0, 1, 2, 3, 9].map(at), [0, 1, 3, 4, 4]);
  assert.equal("a𝛽c".slice(at(1), at(2)), "𝛽");
});

test("a measure is a family with a cutoff, which R and P need", () => {
  assert.deepEqual({ ...measure.parse("nDCG@10") }, { family: "nDCG", cutoff: 10 });
  assert.deepEqual({ ...measure.parse("MRR") }, { family: "MRR", cutoff: null });
  for (const wrong of ["R", "P", "P@0", "nDCG@", "ndcg@10", "nDCG@1e3", ""]) assert.equal(measure.parse(wrong), null);
});

test("the measures of one query are those of their definitions", () => {
  const [ranks, grades] = [
    [2, 0, 5],
    [1, 2, 1],
  ];
  const gain = (grade, rank) => grade / Math.log2(rank + 1);
  near(measure.query("nDCG@10", ranks, grades), (gain(1, 2) + gain(1, 5)) / (gain(2, 1) + gain(1, 2) + gain(1, 3)));
  near(measure.query("nDCG@4", ranks, grades), gain(1, 2) / (gain(2, 1) + gain(1, 2) + gain(1, 3)));
  near(measure.query("R@4", ranks, grades), 1 / 3);
  near(measure.query("P@5", ranks, grades), 2 / 5);
  near(measure.query("MAP", ranks, grades), (1 / 2 + 2 / 5) / 3);
  near(measure.query("MRR", ranks, grades), 1 / 2);
  assert.equal(measure.query("MRR@1", ranks, grades), 0);
  assert.equal(measure.query("nDCG@10", [], []), 0);
});

test("the mean is over the judged queries; a system without a ranking has none", () => {
  const gold = { queries: ["1", "2"], gold: [["a"], ["b"]], grades: [[1], [1]], ranks: [[[1], [4]], null] };
  near(measure.mean("MRR", gold, 0), (1 + 1 / 4) / 2);
  assert.equal(measure.mean("MRR", gold, 1), null);
});

test("τ_AP is 1 for the same order, -1 for the reverse, and the same both ways", () => {
  assert.equal(ranking.tauAP([1, 2, 3], [1, 2, 3]), 1);
  assert.equal(ranking.tauAP([1, 2, 3], [3, 2, 1]), -1);
  assert.equal(ranking.tauAP([1, 2, 3, 4], [2, 9, 1, 4]), ranking.tauAP([2, 9, 1, 4], [1, 2, 3, 4]));
  assert.ok(ranking.tauAP([1, 2, 3, 4], [2, 1, 3, 4]) < ranking.tauAP([1, 2, 3, 4], [1, 2, 4, 3]));
});

test("the Pareto line has what no other beats for less", () => {
  const items = [
    [1, 5],
    [2, 4],
    [3, 7],
    [0, 1],
    [3, 6],
  ].map(([x, y]) => ({ x, y }));
  assert.deepEqual(chart.pareto(items), [
    { x: 0, y: 1 },
    { x: 1, y: 5 },
    { x: 3, y: 7 },
  ]);
  assert.deepEqual(chart.pareto([]), []);
});

const view = {
  measure: "nDCG@10",
  columns: [
    { title: "Average", kind: "score" },
    { title: "Bio_1", kind: "score" },
  ],
  rows: [
    {
      rank: 1,
      mark: { letters: "ab", better: 1, worse: 0, alike: 2 },
      name: "a,b",
      from: "run here",
      kind: "retriever",
      llm: "",
      cells: [{ value: 0.5 }, { value: 0.25 }],
    },
    { name: "=1+1 50%", reported_by: "x|y", kind: "agent", llm: "q", cells: [{ value: null }, { value: 0.3 }] },
  ],
};

test("what is said of a system is counted from its pairs", () => {
  const mark = { letters: "", better: 12, worse: 3, alike: 0 };
  assert.equal(rows.markOf(mark), "better than 12, worse than 3");
  assert.equal(rows.markOf({ ...mark, letters: "ab" }), "ab");
  assert.equal(rows.markOf(null), "");
  assert.ok(rows.peers(mark).includes("differs significantly from all other systems"));
  assert.ok(rows.peers({ ...mark, alike: 1 }).startsWith("1 other system run here or verified cannot be"));
  assert.equal(rows.peers({ ...mark, better: 0 }), ""); // it is alone
});

test("a CSV cell is quoted where it must be, and never runs as a formula", () => {
  assert.deepEqual(files.csv(view).split("\r\n"), [
    "rank,mark,system,from,kind,llm,Average,Bio_1",
    '1,ab,"a,b",run here,retriever,,50.00,25.00',
    ",,'=1+1 50%,x|y,agent,q,,30.00",
    "",
  ]);
});

test("a Markdown table escapes what would end a cell", () => {
  assert.ok(files.markdown(view).includes("| x\\|y |"));
});

test("a column of another kind is one entry: its values are found, written, sorted and exported by its kind", async () => {
  const facts = { short: "", task: "", scenario: "", queries: 1, documents: 1, apart: false };
  const system = (name, score, seconds, llm) => ({
    ...{ name, entry: "", kind: "retriever", retriever: "", expansion: "", reranker: "", llm, size: 0, failures: 0 },
    ...{ figures: [{ value: score, low: null, high: null }], averages: [null], marks: [null], judged_by_kin: [] },
    aspects: [null],
    cost: { dollars: null, seconds, tokens: null },
  });
  const site = {
    measure: "nDCG@10",
    datasets: [{ name: "a", ...facts }],
    sets: [{ name: "a", overlays: [], missing: [], datasets: [0] }],
    systems: [system("slow", 0.5, 2, "x_1"), system("quick", 0.25, 0.0204, ""), system("not run", 0.3, 1, "")],
    published: [],
  };
  site.systems[2].figures = [null];
  const columns = [
    ...rows.columns(site, site.sets[0]),
    { id: "s", title: "Time", label: "s", group: "Cost", kind: "seconds", value: (row) => row.cost.seconds },
    { id: "llm", title: "LLM", label: "LLM", group: "Parts", kind: "text", value: (row) => row.llm || null },
  ];
  const made = await rows.all(site, 0, "nDCG@10", columns);
  assert.deepEqual(
    made.map((row) => row.name),
    ["slow", "quick"], // a row needs a score to be shown
  );
  const shown = made.map((row) => row.cells.map(({ value }, i) => value && rows.KINDS[columns[i].kind].text(value)));
  assert.deepEqual(shown, [
    ["50.00", "2.00 s", "x_1"],
    ["25.00", "20 ms", null],
  ]);
  assert.deepEqual(
    columns.map((column) => rows.startsUpwards(columns, column.id)),
    [false, true, true],
  );
  assert.equal(rows.sorted(made, columns, "s", true)[0].name, "quick");
  const exported = { measure: "nDCG@10", columns, rows: made };
  assert.ok(files.csv(exported).includes("quick,run here,retriever,,25.00,0.0204,\r\n"));
  assert.ok(files.markdown(exported).includes("| ---: | ---: | --- |\n"));
});

test("an average alone and a single dataset are shown where they belong, and count in nothing else", async () => {
  const facts = { short: "", task: "", scenario: "", queries: 1, documents: 1, apart: false };
  const row = (name, values, average) => ({ name, kind: "retriever", llm: "", size: null, values, average });
  const site = {
    measure: "nDCG@10",
    datasets: [
      { name: "a", ...facts },
      { name: "b", ...facts },
    ],
    sets: [{ name: "R2MED", overlays: [], missing: [], datasets: [0, 1] }],
    systems: [],
    published: [row("one", [0.9, null], null), row("average", [null, null], 0.4), row("all", [0.2, 0.3], 0.25)],
  };
  const columns = rows.columns(site, site.sets[0]);
  const made = await rows.all(site, 0, "nDCG@10", columns);
  assert.deepEqual(
    made.map((each) => [each.name, each.rank ?? null, ...each.cells.map((cell) => cell.value)]),
    [
      ["one", null, null, 0.9, null],
      ["average", 1, 0.4, null, null],
      ["all", 2, 0.25, 0.2, 0.3],
    ],
  );
});

test("rows without a value come last, whichever way the others are sorted", () => {
  const made = [{ id: "average" }];
  const some = [
    ["b", 0.2],
    ["none", null],
    ["a", 0.9],
  ].map(([name, value]) => ({ name, cells: [{ value }] }));
  const order = (by, upwards) => rows.sorted(some, made, by, upwards).map((row) => row.name);
  assert.deepEqual(order("average", false), ["a", "b", "none"]);
  assert.deepEqual(order("average", true), ["b", "a", "none"]);
  assert.deepEqual(order("name", true), ["a", "b", "none"]);
});

test("columns of aspects exist only if a system has them, and a system without them has no value", () => {
  const dataset = { name: "a", short: "A", task: "T", apart: false };
  const site = {
    ...{
      datasets: [dataset],
      sets: [{ name: "demo", datasets: [0], missing: [], overlays: [] }],
      aspect_measures: ["alpha-nDCG@25", "A-Recall@25"],
    },
    systems: [{ aspects: [[0.25, 0.5]] }, { aspects: [null] }],
  };
  const made = rows.columns(site, site.sets[0]);
  assert.deepEqual(
    made.map(({ label }) => label),
    ["A", "α-nDCG", "A-Rec"],
  );
  assert.deepEqual(
    [...site.systems, {}].map((row) => made[2].value(row)),
    [0.5, null, null],
  );
  site.systems.shift();
  assert.equal(rows.columns(site, site.sets[0]).length, 1);
});
