# px add and px remove: words, and what they say where there is nothing to change.
cd "$TMP"
says "$PX" add
says "$PX" remove --nosuch x
says "$PX" add six | sed "s,$TMP,TMP,"
printf '[project]\nname = "demo"\ndependencies = ["six>=1"]\n[tool.px]\n' >pyproject.toml
says "$PX" add 'six>=1'
says "$PX" add '=x='
says "$PX" remove sixx
says "$PX" remove 'six>=1'
says "$PX" remove --group dev six
"$PX" --json add 'six>=1' | sed "s,$TMP,TMP,"
cat pyproject.toml
