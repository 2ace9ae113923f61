# Sourced by the scripts: sets the machine up, then puts the clone's own tools first on PATH.
# Nothing outside the clone is changed.
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
scripts/setup
export PATH="$root/.venv/bin:$root/node_modules/.bin:$PATH"
# Local runs read the Pyodide bundle from the clone and look nothing up on the network.
export MINIFLARE_WORKERD_PATH="$root/scripts/workerd"
export CLOUDFLARE_CF_FETCH_ENABLED=false
export WRANGLER_SEND_METRICS=false
