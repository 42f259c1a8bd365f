# A store that nothing is in: made on the way, for its owner alone, and cleaned without harm.
export PX_HOME=$TMP/home
mkdir -m 755 "$PX_HOME"
"$PX" sandbox list
"$PX" sandbox status | sed "s,$TMP,TMP,"
"$PX" sandbox status --verify | tail -n 1
"$PX" sandbox gc
"$PX" sandbox clean --dry-run
"$PX" sandbox clean
"$PX" --json sandbox list
"$PX" sandbox status --json | sed "s,$TMP,TMP,"
"$PX" sandbox status --verify --json | sed "s,$TMP,TMP,"
"$PX" sandbox gc -n --min-age 7d --max-size 10g --json
stat -c '%a %n' "$PX_HOME"/* | sed "s,$TMP,TMP,"
