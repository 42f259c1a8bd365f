# Changes under a name: the next command goes on from them, and one day they are applied or dropped.
need_overlay_dir
export PX_HOME=$TMP/home
mkdir "$TMP/work" "$TMP/other"
echo 1 >"$TMP/work/f"
run() { "$PX" -q exec --changes "$TMP/work" "$@"; }
run --keep=one -c 'echo 2 >>f'
run --keep=one -c 'echo 3 >>f; cat f'
cat "$TMP/work/f"
says "$PX" exec --changes "$TMP/other" --keep=one -c true
run --keep=one --apply -c true
cat "$TMP/work/f"
find "$PX_HOME" -mindepth 2
run --keep=two -c 'echo 4 >>f' && run --keep=two --discard -c true && find "$PX_HOME" -mindepth 2
"$PX" exec --changes "$TMP/work" --keep -c 'echo 5 >>f' 2>&1 | sed 's/as [0-9a-f]*, in .*home/as NAME, in HOME/; s,changes/.*,changes/NAME,'
"$PX" --json exec --changes "$TMP/work" --keep=three -c true | jq -r .changes_kept | sed 's,.*/home,HOME,'
stat -c %a "$PX_HOME/changes" "$PX_HOME/changes/three"
# What others changed meanwhile stops it, and what was kept stays kept.
run --keep=four -c 'echo mine >f'
sleep 0.05
echo theirs >"$TMP/work/f"
says run --keep=four --apply -c true
cat "$TMP/work/f" "$PX_HOME/changes/four/upper/f"
