// Runs `wrangler dev` in the foreground: its own output goes to standard error, and one line with the URL to
// standard output once the worker has answered. The Pyodide bundle of the clone serves in place of a download.
// `scripts/local.py` starts it with its options, one JSON text.
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";

const projectRoot = path.dirname(import.meta.dirname);
const options = JSON.parse(process.argv[2]);

// Wrangler's own command starts this very file in a process below it, which would outlive a `kill -9` of both.
const command = createRequire(import.meta.url).resolve("wrangler");
const wrangler = spawn(
  options.python,
  [
    ...[path.join(import.meta.dirname, "leash.py"), String(process.pid), "-"],
    ...[process.execPath, "--no-warnings", command],
    "dev",
    ...["--ip", "127.0.0.1", "--port", String(options.port), "--inspector-port", "0"],
    ...["--persist-to", options.state],
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
    env: { ...process.env, XDG_CONFIG_HOME: options.config },
  },
);

let stopping = false;
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.on(signal, () => {
    stopping = true;
    wrangler.kill(signal);
  });
}
wrangler.on("exit", (code) => {
  rmSync(options.deleteAtEnd, { recursive: true, force: true });
  process.exit(stopping ? 0 : (code ?? 1));
});

for await (const line of createInterface({ input: wrangler.stdout })) {
  process.stderr.write(`${line}\n`);
  const url = /Ready on (http:\S+)/.exec(line)?.[1];
  if (url !== undefined) {
    await fetch(`${url}/health`);
    process.stdout.write(`ready ${url}\n`);
  }
}
