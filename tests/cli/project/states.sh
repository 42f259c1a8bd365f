# What init, sync and status say to a person, from nothing to a consistent project; without requirements nobody has to resolve.
export PX_HOME=$TMP/home
mkdir "$TMP/demo"
cd "$TMP/demo"
clean() { sed -E "s,$TMP,TMP,g; s,[0-9a-f]{64},ID,g"; }
try "$PX" status 2>&1 | clean
"$PX" init
"$PX" init
try "$PX" status | clean
try "$PX" status --brief
"$PX" sync --dry-run
says "$PX" sync --frozen
"$PX" -q sync
"$PX" sync
try "$PX" status | clean
try "$PX" status --brief
cat px.lock | clean
printf '\n[tool.px.env]\nMODE = "x"\n' >>pyproject.toml
try "$PX" status | clean
says "$PX" sync --frozen
"$PX" sync 2>/dev/null
rm -r .px
try "$PX" status | clean
"$PX" sync --frozen 2>/dev/null
printf 'version = \n' >px.lock
try "$PX" status | clean
says "$PX" sync --frozen
"$PX" sync 2>/dev/null
"$PX" status --brief
mkdir "$TMP/all" "$TMP/all/one"
cd "$TMP/all"
printf '[tool.px.workspace]\nname = "all"\nmembers = ["one"]\n' >pyproject.toml
printf '[project]\nname = "one"\nversion = "1"\n' >one/pyproject.toml
try "$PX" status | clean | head -n 1
