# px sandbox in a project: what people read, without a base in the store.
export PX_HOME=$TMP/home
mkdir "$TMP/demo"
cd "$TMP/demo"
clean() { sed -E "s,$TMP,TMP,g; s,[0-9a-f]{64},ID,g"; }
says "$PX" sandbox explain | clean
"$PX" -q init
"$PX" sandbox explain | clean
"$PX" -q sync
"$PX" sandbox add yaml postgres
"$PX" sandbox add yaml
"$PX" sandbox explain | clean
"$PX" sandbox remove yaml
says "$PX" sandbox add
says "$PX" sandbox add postgers
says "$PX" sandbox remove nonsense
says "$PX" sandbox explain everything
"$PX" --json sandbox add xml | clean
"$PX" --json sandbox explain | clean
printf '[tool.px.sandbox]\nauto = false\n' >>pyproject.toml
"$PX" sandbox explain | clean
printf 'base = "nowhere"\n' >>pyproject.toml
says "$PX" sandbox explain
says "$PX" sandbox build
"$PX" --json sandbox build | clean || true
cat pyproject.toml
