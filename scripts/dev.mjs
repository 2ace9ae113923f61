// Runs `wrangler dev` in the foreground: its own output goes to standard error, and one line with the URL to
// standard output once the worker has answered. The Pyodide bundle of the clone serves in place of a download.
import { spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

const projectRoot = path.dirname(import.meta.dirname);
const { values } = parseArgs({
  options: {
    cwd: { type: "string", default: process.cwd() },
    port: { type: "string", default: "8787" },
    state: { type: "string", default: path.join(projectRoot, ".wrangler", "state") },
  },
});
const state = path.resolve(values.cwd, values.state);

const wrangler = spawn(
  "wrangler",
  [
    "dev",
    ...["--ip", "127.0.0.1", "--port", values.port, "--inspector-port", "0"],
    ...["--persist-to", state],
    // Named so, the file yields to the environment's variables.
    ...["--env-file", ".dev.vars"],
    // For local runs only: lets workerd take the Pyodide bundle from disk. The flags given here add to the
    // configuration's.
    ...["--compatibility-flags", "python_workers_development"],
    "--show-interactive-dev-session=false",
  ],
  {
    cwd: projectRoot,
    stdio: ["ignore", "pipe", "inherit"],
    // Keeps wrangler's log files and its registry of running workers out of the home folder.
    env: { ...process.env, XDG_CONFIG_HOME: path.join(state, "config") },
  },
);

let stopping = false;
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.on(signal, () => {
    stopping = true;
    wrangler.kill(signal);
  });
}
wrangler.on("exit", (code) => process.exit(stopping ? 0 : (code ?? 1)));

for await (const line of createInterface({ input: wrangler.stdout })) {
  process.stderr.write(`${line}\n`);
  const url = /Ready on (http:\S+)/.exec(line)?.[1];
  if (url !== undefined) {
    await fetch(`${url}/health`);
    process.stdout.write(`ready ${url}\n`);
  }
}
