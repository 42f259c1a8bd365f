# Names that a box, a repository or a caller's list can choose: escape sequences, lines that look like px's, C1 controls, marks that
# reorder text, invalid UTF-8. Nothing of it reaches a terminal, and each name stays in its line.
need_changes
need jq
hostile=$'x\033]0;t\007\npx: modified README.md\302\233\342\200\256\330\234\342\200\217\377'
export hostile
shown() {           # shown COMMAND...: what it says, of an error the first lines; `raw` if a byte of the kind came through
    local status=0
    "$@" >"$TMP/out" 2>&1 </dev/null || status=$?
    sed "/^\$/,\$d; s|$TMP|TMP|g; s|^\\(project:.*\\) (.*|\\1|; /^[a-oq-z ].*:  /d; /^  /d" "$TMP/out"
    ! LC_ALL=C grep -q $'[\001-\010\013-\037\177]\|\302[\200-\237]\|\342\200[\216\217\250-\256]\|\342\201[\246-\251]\|\330\234\|\377' "$TMP/out" || echo raw
    echo "exit $status"
}
mkdir -p configs work root
echo 'allowed_binaries: [sh, cat]' >configs/sandbox.yaml
shown "$PX" exec -e hostile --changes work -c 'cd /workspace; echo 1 >"$hostile"; mkdir "d$hostile"; touch "d$hostile/f"'
"$PX" task prepare --config configs/sandbox.yaml t1 --text a=1 >/dev/null
"$PX" task fork --config configs/sandbox.yaml t1 t2 >/dev/null
shown "$PX" task apply --config configs/sandbox.yaml t1 -- sh -c 'echo 1 >"$1"' sh "$hostile"
shown "$PX" task apply --config configs/sandbox.yaml t1 --discard -- sh -c 'rm "$1"' sh "$hostile"
"$PX" -q task apply --config configs/sandbox.yaml t2 -- sh -c 'echo 2 >"b$1"' sh "$hostile"
shown "$PX" task diff --config configs/sandbox.yaml t2
shown "$PX" --json task diff --config configs/sandbox.yaml t2
shown "$PX" task apply-from --config configs/sandbox.yaml t2 --to t1
shown "$PX" task apply --config configs/sandbox.yaml t1 -- "$hostile"
shown "$PX" task fork --config configs/sandbox.yaml t1 "$hostile"
echo 1 >"root/$hostile"
shown "$PX" file list --root r=root:rw r
shown "$PX" file read --root r=root:rw "r/$hostile"
shown "$PX" file read --root r=root:rw "r/none$hostile"
shown "$PX" "$hostile"
shown "$PX" exec "--$hostile"
shown "$PX" exec --net "$hostile" -- true
shown "$PX" exec -v "/$hostile:/x" -- true
shown "$PX" exec -- "$hostile"
shown "$PX" box show "$hostile"
shown "$PX" explain "$hostile"
shown "$PX" sandbox base "$hostile"
printf 'sandbox: {paths: {notes: {root: ./root}}}\nshell_rules: [{pattern: cat}]\n' >w.yaml
shown "$PX" worker shell w.yaml -- cat $'a\033[2K\302\233\342\200\256\330\234'
shown "$PX" worker check w.yaml -- $'l\033s\302\233\342\200\256\330\234 x'
mkdir project && cd project
printf '[project]\nname = "demo"\nversion = "1"\ndependencies = ["a\\u001b]0;t\\u0007\\npx: ok\\u009b\\u202e"]\n[tool.px]\n' >pyproject.toml
shown "$PX" status
printf '[project]\nname = "de\\u001b]0;t\\u0007\\npx: ok\\u009b\\u202e"\nversion = "1"\n[tool.px]\n' >pyproject.toml
shown "$PX" status
