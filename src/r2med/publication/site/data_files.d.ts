/* The shapes of the data files that Python writes and the scripts read, checked by `make check`. Nothing of this is shipped.
   Scores are between 0 and 1. A document, a query, a system or a dataset that another file names is named by its number. */

interface Score {
  value: number;
  low: number | null; // the ends of its 95 % interval
  high: number | null;
}

/* --- data/site.js: leaderboard.py --------------------------------------------------------------------------------- */

interface SystemParts {
  kind: string;
  retriever: string;
  expansion: string;
  reranker: string;
  llm: string;
  size: number | null; // billions of parameters of the largest model; 0: no model
}

interface DatasetFacts {
  name: string;
  short: string;
  task: string;
  scenario: string;
  queries: number | null;
  documents: number | null;
  apart: boolean; // there is a second average without it
}

interface DatasetSet {
  name: string;
  group: string; // its name without overlays
  overlays: string[];
  labels: string; // in words
  datasets: number[];
  missing: string[]; // datasets of the group without such labels; then there is no average
}

interface SystemRow extends SystemParts {
  name: string;
  entry: string; // the name of the entry that it was submitted in
  unverified: string; // why the entry is not verified; "" if it is, and for systems run here
  figures: (Score | null)[]; // by dataset
  averages: (Score | null)[]; // by set
  runs: string; // how often it was run: "deterministic", "one run", "5 runs"
  marks: (Mark | null)[]; // by set: null without an average, and for entries that are not verified
  cost: SystemCost; // of one query
  failures: number;
  lock: string; // the digest of the lock that decided its records beforehand; "" without one
  aspects: (number[] | null)[]; // by set: means of the measures of aspects; null without them
  judged_by_kin: string[];
}

/* How a system compares with the others that have a mark, counted from the tests of their pairs. */
interface Mark {
  letters: string; // two systems share a letter if and only if they do not differ; "" if more than six were needed
  better: number; // systems that it is better than
  worse: number;
  alike: number; // systems that cannot be distinguished from it
}

interface SystemCost {
  dollars: number | null;
  seconds: number | null; // the mean
  tokens: number | null;
}

interface PublishedRow extends SystemParts {
  name: string;
  values: (number | null)[]; // by dataset
  average: number | null; // null: only scores of some datasets are published
  average_only: boolean; // no score of a dataset is published
  runs: string; // "runs not stated"
  reported_by: string;
  source: string;
  note: string;
  max_length: number | null;
  differs: string;
  command: string; // empty where there is a reason why it cannot be run
  reason: string;
}

interface Site {
  foot: string;
  kinds?: ReviewKind[]; // of the review page, as is the guideline
  guideline?: string;
  measure: string;
  explored_measures: string[]; // that the explorer offers
  system_kinds: string[]; // in the order of the marks in charts
  aspect_measures: string[]; // the columns of systems' `aspects`
  datasets: DatasetFacts[];
  sets: DatasetSet[];
  systems: SystemRow[];
  published: PublishedRow[];
  answers?: AnswerLabels; // left out if there are no answers of readers
}

/* The lists of answer_labels.py, and the datasets with answers of readers. */
interface AnswerLabels {
  datasets: number[];
  condition: AnswerCondition; // that systems are ranked by
  conditions: { name: AnswerCondition; label: string; about: string; read: string }[];
  measures: AnswerMeasure[];
  statuses: Record<AnswerStatus, string>; // what each means; "" if the answer is one
  grades: Record<AnswerGrade, string>; // the word that is shown
}

interface AnswerMeasure {
  name: string;
  title: string;
  label: string; // the head of its column; "" if it has none
  group: string;
  about: string;
}

/* --- data/answers.js: answer_rows.py ------------------------------------------------------------------------------ */

type AnswerCondition = "closed book" | "retrieved" | "relevant" | "random" | "searched";
type StatusCounts = Partial<Record<AnswerStatus, number>>;
type AnswerStatus = "answered" | "no option" | "refused" | "cut off" | "unreadable" | "failed";
type GradeCounts = Partial<Record<AnswerGrade, number>>;
type AnswerGrade = "nothing" | "wrong" | "partly" | "right";

interface AnswerCost {
  dollars: number | null;
  seconds: number | null;
  tokens: number | null;
}

interface AnswerRow {
  name: string; // the system and its reader, with what tells two records apart
  system: string;
  number: number | null; // of the system; null if the board has no record of it
  reader: string;
  passages: number;
  questions: number;
  asked: number; // questions of the most complete records on these datasets
  scores: Record<AnswerCondition, Record<string, Score>>; // condition -> measure -> score
  gain: Score | null; // accuracy with retrieved passages minus closed book
  share: Score | null; // the gain as a share of the gain of the labelled passages
  statuses: Record<AnswerCondition, StatusCounts>;
  grades: Record<AnswerCondition, GradeCounts>; // the judge's, of open answers
  cost: AnswerCost | null; // of one answer with the system's passages; null if it is not known
  costs: Record<AnswerCondition, AnswerCost | null>;
  runs: string; // how often it was run, in words
  judging: number | null; // dollars of judging one answer
  judge: {
    names: string[];
    agreed: number;
    both: number;
    controls: { right: number; asked: number };
    own_family: boolean;
    trust: string; // "not tested"; "" if it passed
  } | null;
  notices: string[];
  entry?: string; // the entry that has it; left out if it was made here
  unverified?: string[]; // what a check of the entry cannot compute again
  no_verdict?: string; // why the entry is not verified; "" if it is
}

/* The rows of one dataset, or of a group of datasets, and the correlation of nDCG@10 with accuracy across systems. */
interface AnswersView {
  name: string;
  correlations: { reader: string; systems: number; questions: number; observed: number | null }[];
  datasets: number[];
  rows: AnswerRow[];
}

/* --- data/system/N.js: system_pages.py ---------------------------------------------------------------------------- */

interface StageRecord {
  stage: "expand" | "retrieve" | "rerank";
  name: string;
  recorded: boolean;
  seconds: number;
  prepared: number;
  calls: number;
  tokens: number;
  dollars: number;
  unpriced: number;
  failures: number;
  kinds: Record<string, number>; // kind of failure -> times
  failed: Record<string, string>; // query -> kinds of its failures
  repairs: Record<string, number>; // kind of repair -> times
}

interface SystemRecord {
  dataset: number;
  created: string;
  source: string;
  key: string;
  run: string;
  seconds: number | null; // the mean of a query
  stages: StageRecord[];
}

/* The slices of one kind, such as those by length. */
interface SlicesOfKind {
  title: string;
  slices: { label: string; queries: number; score: Score }[];
}

interface SystemFile {
  command: string;
  settings: Record<string, string>;
  versions: Record<string, string>;
  records: SystemRecord[];
  slices: SlicesOfKind[][]; // by set
}

/* --- data/gold/N.js: gold_ranks.py -------------------------------------------------------------------------------- */

interface GoldFile {
  queries: string[];
  gold: string[][]; // by query: ids of relevant documents
  grades: number[][]; // by query: their grades, all above 0
  ranks: (number[][] | null)[]; // by system and query: their ranks, 0 beyond the depth
}

/* --- data/explorer/…: explorer.py --------------------------------------------------------------------------------- */

interface ExplorerDatasets {
  datasets: { dataset: number; systems: number[] }[];
}

interface ExplorerIndex {
  queries: { id: string; text: string; answer: string; body: string }[];
  systems: number[];
  edges: string; // characters that are never the first or the last of a word
  blanks: string; // characters between words
}

interface RankingsFile {
  rankings: number[][]; // by query: documents of its query file
  scores: number[][];
  copies: { query: number; ranks: number[] }[]; // ranks of relevant documents where copies of their text count
  failures: { query: number; text: string }[];
  traces: number[]; // queries that an agent worked on
}

interface ShownDocument {
  id: string;
  text: string | null; // null: not in the corpus
  before: number; // characters left out before the text
  after: number;
  grade: number | null; // null: unjudged
  copy: number | null; // the relevant document that has the same text
}

/* The index terms in a written form: one term for all of it, or a term for each part. */
type WordForm = number | { start: number; stop: number; term: number }[];

interface LabelLine {
  who: string;
  grade: number;
  why: string;
}

/* Texts that systems searched with. */
interface GeneratedTexts {
  texts: string[];
  terms: number[];
  systems: number[];
}

interface QueryFile {
  documents: ShownDocument[]; // the relevant ones first
  gold: number; // how many of them are relevant
  said: { document: number; lines: LabelLine[] }[]; // labels of overlays
  aspects: { name: string; weight: number; documents: number[] }[]; // parts of the answer, and the documents that support them
  words: number; // terms below this number are the query's
  common: number[];
  forms: Record<string, WordForm>; // by what is written
  generated: GeneratedTexts[];
  chunk?: RegExp; // made of it by marks.js, once
  lookup?: Map<string, WordForm>;
}

type SearchStep = "returned" | "shown" | "opened" | "cited" | "kept";
type TraceFile = AgentTrace[]; // one for each agent of the system

interface AgentTrace {
  prompt: string;
  turns: {
    text: string;
    query: string;
    notice: string;
    documents: { id: string }[] | null;
    information: string;
    analysis: string;
    status?: string; // of a call of a tool
    further?: boolean; // a further call in the same turn of the model
    shown?: string[]; // documents whose text was in the conversation
    opened?: string[]; // documents that the agent looked into
  }[];
  chosen?: string[]; // documents that the agent ended with
  text: string; // the answer, or the text that was searched
  steps?: Partial<Record<SearchStep, string[]>>; // of an agent that answers: how far documents came
  confidence?: number | null; // from 0 to 1
  failure?: { kind: string; message: string } | null;
  relevant: string[]; // the relevant documents of the query
}

/* --- data/explorer/N/answers.js and data/explorer/N/aSYSTEM-QUERY.js: answer_texts.py ------------------------------ */

type AnswersIndex = { system: number; queries: number[] }[];

interface AnswerSentence {
  text: string;
  cited: number[]; // positions in `read`
  unknown: number; // citations of passages that do not exist
  supported: boolean | null; // null: no judge decided
}

interface ShownNugget {
  text: string;
  vital: boolean | null; // null: not known
  found: "support" | "partial" | "none";
}

interface ShownAnswer {
  condition: AnswerCondition;
  status: AnswerStatus;
  failure: string;
  text: string;
  left_out: number; // characters of the text
  sentences: AnswerSentence[];
  read: number[]; // documents of the query's file; those beyond its end are in `more`
  cut: number;
  tokens: number;
  options: string[];
  choice: number | null;
  by_rule: boolean | null;
  grade: AnswerGrade | null; // the judge's, of an open answer
  remarks: string[];
  why: string;
  nuggets: ShownNugget[];
  statements: { found: number; all: number };
  scores: Record<string, number>; // by measure
}

interface ReaderAnswers {
  reader: string;
  passages: number;
  judge: string;
  own_family: boolean;
  answers: ShownAnswer[];
}

interface AnswersFile {
  more: ShownDocument[]; // passages that were read, and that no ranking shows
  readers: ReaderAnswers[];
}

/* --- which file has which shape ----------------------------------------------------------------------------------- */

type DataFile<Name extends string> = Name extends "site"
  ? Site
  : Name extends "answers"
    ? AnswersView[]
    : Name extends "explorer/index"
      ? ExplorerDatasets
      : Name extends `explorer/${number}/answers`
        ? AnswersIndex
        : Name extends `explorer/${number}/a${number}-${number}`
          ? AnswersFile
          : Name extends `system/${number}`
            ? SystemFile
            : Name extends `gold/${number}`
              ? GoldFile
              : Name extends `explorer/${number}/index`
                ? ExplorerIndex
                : Name extends `explorer/${number}/s${number}`
                  ? RankingsFile
                  : Name extends `explorer/${number}/q${number}`
                    ? QueryFile
                    : Name extends `explorer/${number}/t${number}-${number}`
                      ? TraceFile
                      : never;

/* --- what the pages make of them ---------------------------------------------------------------------------------- */

/* What the values of a column are: rows.js says how each kind is written. */
type ColumnKind = "score" | "difference" | "share" | "harm" | "seconds" | "dollars" | "count" | "parameters" | "text";

interface KindOfColumn {
  text: (value: any) => string; // on the page
  file: (value: any) => string; // in CSV and Markdown
  tick: (value: any) => string; // at an axis
  best?: (...values: number[]) => number; // printed in bold
  isText?: boolean; // aligned to the left
}

/* A column of the leaderboard: an average, the mean of a task, one dataset, or something else that is known of a row. */
interface Column {
  id: string;
  title: string;
  label: string;
  group: string;
  kind: ColumnKind;
  members?: number[]; // the datasets whose mean it is
  dataset?: number; // the only one of them
  main?: boolean; // the first column, by which systems are ranked
  value?: (row: Omit<Row, "cells">) => number | string | null; // of a column that is not a mean of scores
  interval?: (row: Omit<Row, "cells">) => Omit<Score, "value"> | null; // of that value
  about?: string; // what its values are, for readers who do not know
  note?: (row: Omit<Row, "cells">) => string; // about one value
}

interface Cell {
  value: number | null;
  low: number | null;
  high: number | null;
}

/* A row of the leaderboard, run here, submitted or published. */
interface Row extends Partial<Omit<SystemRow, keyof PublishedRow>>, Partial<PublishedRow> {
  name: string;
  kind: string;
  llm: string;
  size: number | null;
  ours: boolean;
  from: string;
  mark: Mark | null;
  cells: Cell[];
  number?: number;
  rank?: number;
  last?: boolean; // below all complete rows and without a rank, because it is not about all queries
  system?: string; // the system of a row that is not a system itself
  chips?: Chip[]; // further notes beside the name
  answers?: AnswerRow;
}

/* Ranked rows of the leaderboard or of the page Answers: ranked_view.js draws them. */
interface RankedContent {
  site: Site;
  set: DatasetSet;
  setNumber: number;
  measure: string;
  columns: Column[];
  all: Row[];
  params: URLSearchParams;
  chartLines?: (by: string) => { label: string; value: number }[]; // scores to compare with, drawn across the chart
  chartNotes?: { unplaced: string; line: string };
}

interface RankedView extends RankedContent {
  rows: Row[];
  body: HTMLElement;
  selected: number;
  lines: Map<Row, HTMLElement>;
  order: () => { by: string; upwards: boolean };
  change: (changes: Record<string, string>) => void; // of the address; drawn again
  sort: (column: string, upwards?: boolean) => void;
  restart: (changes: Record<string, string>) => void; // with other rows
  open: (position: number) => Promise<boolean>; // the details of a row
  draw: () => void;
}

interface RankedDrawing {
  title: string;
  nouns: string; // what the rows are
  kind: string; // a class of the results
  labels: string; // which labels the scores are made with
  details: (row: Row) => any; // the content of the details of a row
  notes: () => any; // below the table
}

/* A filter of the leaderboard: a name in the address, what it offers, and which rows pass. */
interface RowFilter {
  name: string;
  label: string;
  options: (rows: Row[]) => Option[];
  passes: (row: Row, wanted: string) => boolean;
}

/* What is saved as a file. */
interface ExportedView {
  measure: string;
  labels: string;
  columns: Column[];
  rows: Row[];
}

/* A part of a text. */
interface Stretch {
  start: number;
  stop: number;
}

/* A word of a text that matches. */
interface Match extends Stretch {
  term: number;
  kind: "query" | "generated" | "both" | "answer";
  common: boolean;
}

/* What is looked for in the texts of a query. */
interface WantedWords {
  chunk: RegExp;
  lookup: Map<string, WordForm>;
  edges: string;
  query: number;
  common: Set<number>;
  generated: Set<number>;
}

interface Chosen {
  data: string;
  q: string;
  a: string;
  b: string;
  order: string;
  find: string;
  measure: string;
}

interface ExplorerView {
  site: Site;
  available: number[];
  number: number;
  dataset: DatasetFacts;
  index: ExplorerIndex;
  gold: GoldFile;
  judged: Map<number, number>; // position of a query in the index -> in the gold file
  chosen: Chosen;
  kept: Map<string, any>;
  side: "a" | "b";
  names: string[];
  scores: ExplorerScores;
  wide: MediaQueryList;
  choose: (changes: Partial<Chosen>, push?: boolean) => Promise<void>;
  step: (by: number) => void;
  compare: () => void;
  wantedBy: (system: number) => WantedWords;
  reference: (answer: string) => HTMLElement | null;
  citedBy: (file: AnswersFile | null) => Map<number, string[]>;
  files: RankingsFile[]; // of A, and of B where there is one
  query: QueryFile;
  answered: Map<number, Set<number>>; // system -> queries with answers
  answers: (AnswersFile | null)[]; // of A, and of B where there is one
  condition: AnswerCondition; // that is shown first
  shown: number[]; // positions of the queries in the list
  listed?: string; // the choices that `shown` was computed with
  listDrawn?: string;
  drawn?: string;
  position?: number;
  turn?: object; // of the last drawing that was begun
  order: HTMLSelectElement;
  list: HTMLElement;
  count: HTMLElement;
  body: HTMLElement;
  queries: HTMLDetailsElement;
}

/* What explorer_scores.js finds out; null where a query is not judged. */
interface ExplorerScores {
  number: (name: string) => number | undefined;
  kept: <Value>(key: string, make: () => Value) => Value;
  standing: () => number[];
  rival: () => number | undefined;
  mean: (system: number) => number;
  valueOf: (system: number, query: number) => number | null;
  ranksOf: (system: number, query: number) => number[];
  listed: () => number[];
  sides: () => number[]; // of A, and of B where there is one
}

/* One side of a comparison: a system and what it ranked for the query. */
interface Side {
  letter: "A" | "B";
  system: number;
  file: RankingsFile;
  documents: ShownDocument[];
  said: Map<number, LabelLine[]>;
  cited: Map<number, string[]>; // document -> the readers that cite it
  ranking: number[];
  scores: number[];
  wanted: WantedWords;
}

interface PageKey {
  key: string;
  what: string; // what it does, for the help
  action: (event: KeyboardEvent) => unknown;
}

/* One of several values that a person can choose. */
interface Option {
  value: string;
  label: string;
}

interface Fact {
  name: string;
  value: any;
}

interface Chip {
  text: string;
  kind?: string; // its colour: bad, solid, gold
  title?: string;
}

/* A column of a table: its head, and what it shows of a row. */
interface TableColumn<Row> {
  title: string;
  num?: boolean; // aligned to the right
  isHead?: boolean; // its cells name the rows
  kind?: string; // a class of its head and its cells
  cell: (row: Row, position: number) => any; // the content of a cell, or a cell
}

/* A page: what it is called, and what draws it. */
interface Page {
  title: string;
  label?: string; // stands in the navigation
  when?: (site: Site) => boolean;
  keys?: PageKey[] | null; // null: shortcuts are turned off
  show: (main: HTMLElement, params: URLSearchParams, site: Site) => any;
}

/* --- the pages that are served: search_protocol.py, review_desk.py ------------------------------------------------ */

type ReviewVerdict = "accept" | "unsure" | "reject";
type ReviewReply = string; // a word of the scale
type ReviewReplies = Record<string, ReviewReply>; // by the name of a point
interface ReviewAlpha extends Score {
  items: number;
}

/* A kind of review items: its rubric. */
interface ReviewKind {
  name: string;
  noun: string;
  task: string;
  points: { name: string; text: string }[];
  scale: { word: ReviewReply; label: string; key: string; verdict: ReviewVerdict }[]; // the highest first
}

interface ReviewText {
  label: string;
  text: string;
  folds: boolean;
}

interface ReviewItem {
  token: string;
  beside: ReviewText[]; // to compare with
  main: ReviewText[]; // to review
  sentences: { source: string; translation: string; marks: string }[];
  origin: { title: string; url: string; source: string } | null; // of a passage
  verdict: ReviewVerdict | null; // what this person said
  answers: ReviewReplies; // to each point
  comment: string;
  correctable: ReviewText | null; // the text that people can correct
  correction: string; // that text as this person corrected it; empty where they did not
  revision: string; // of that verdict; empty where there is none
  frozen?: boolean; // what others said was shown
  reviews?: { verdict: ReviewVerdict; answers: ReviewReplies; comment: string; correction: string }[]; // of an item that people disagree about
}

/* The answer to POST /view: an item to review, or one that people disagree about. */
interface ReviewAnswer {
  item: ReviewItem | null;
  back: boolean;
  on: boolean;
  reviewed?: number;
  finished?: number; // items with enough reviews, if a number is wanted
  open?: number; // disagreements to settle
  settled?: number;
  annotators?: number;
  alpha?: Record<string, ReviewAlpha>; // by the name of a point
}

/* What is sent to POST /decide, and what answers it: the revision, and with status 409 the verdict that was there. */
interface ReviewDecision {
  name: string;
  kind: string;
  item: string;
  answers: ReviewReplies;
  comment: string;
  correction: string;
  seen: string;
  disputes: boolean;
}

interface DecisionAnswer {
  revision: string;
  verdict?: ReviewVerdict;
  answers?: ReviewReplies;
  comment?: string;
  correction?: string;
  detail?: string;
}

/* What is on the review page. */
interface ReviewPage {
  name: string;
  disputes: boolean;
  main: HTMLElement;
  site: Site & { kinds: ReviewKind[] };
  kind: ReviewKind;
  data: ReviewAnswer | null; // null until the first answer
  replies: ReviewReplies;
  current: string; // the point that a key answers
  buttons: HTMLButtonElement[];
  rows: HTMLElement[]; // one for each point
  comment: HTMLTextAreaElement | null;
  correction: HTMLTextAreaElement | null;
  notice: HTMLElement;
}

interface SearchPassage {
  id: string;
  score: number;
  text: string;
  cut: boolean;
  before: number | null;
  window: Stretch;
  marks: (Stretch & { kind: Match["kind"] })[]; // in characters, as Python counts them
}

interface SearchStage {
  stage: "expand" | "retrieve" | "rerank";
  name: string;
  status: "ok" | "partial" | "failed";
  notices: string[];
  seconds: number;
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  texts: number;
  dollars: number | null;
}

interface SearchAnswer {
  system: string;
  status: "ok" | "partial" | "failed";
  problem: string;
  passages: SearchPassage[];
  generated: string[];
  terms: { term: string; weight: number }[];
  turns: { text: string; query: string; documents: string[]; notice: string }[];
  stages: SearchStage[];
  spent: number;
  budget: number | null;
}
