# Files, a worker thread and a child process.
need node
"$PX" exec --seccomp strict --timeout 50s -w /tmp -- node -e '
const fs = require("fs"), child = require("child_process"), {Worker} = require("worker_threads");
fs.writeFileSync("a", "1");
fs.copyFileSync("a", "b");
new Worker("process.exit(0)", {eval: true}).on("exit", () =>
    fs.promises.readFile("b").then(text => console.log(text.toString(), child.execSync("echo child").toString().trim())));
'
