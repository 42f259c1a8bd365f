# A file of holes is shown and applied as such: no bytes are copied for them, and none count.
need_changes
need jq
mkdir "$TMP/work"
"$PX" exec --changes "$TMP/work" --disk 16m --apply -c 'cd /workspace; truncate -s 8T s; printf end >>s; truncate -s 64m t' 2>&1
(cd "$TMP/work" && stat -c '%n %s' s t)
[ "$(du -sm "$TMP/work" | cut -f1)" -lt 4 ] && echo 'no disk used'
# A change behind the hole is found, and is all that is written.
"$PX" exec --changes "$TMP/work" --apply -c 'cd /workspace; printf END | dd of=s bs=1 seek=8796093022208 conv=notrunc status=none; touch t' 2>&1
tail -c 3 "$TMP/work/s" && echo
[ "$(du -sm "$TMP/work" | cut -f1)" -lt 4 ] && echo 'no disk used'
# An exabyte: merged where the file system has such files, refused as a whole where it does not.
"$PX" exec --changes "$TMP/work" --apply -c 'cd /workspace; echo 1 >a; truncate -s 1024P z' 2>"$TMP/err" || grep -q '^PX046  nothing was merged' "$TMP/err"
[ -e "$TMP/work/a" ] && a=merged || a=refused
[ -e "$TMP/work/z" ] && z=merged || z=refused
[ $a = $z ] && echo 'all or nothing'
# Each name of a file becomes a file: together more than the command may have.
mkdir "$TMP/names"
says "$PX" exec --changes "$TMP/names" --disk 16m --apply -c 'cd /workspace; head -c 4m /dev/zero >f; for i in 1 2 3 4 5; do ln f f$i; done'
ls "$TMP/names"
# The presets for strangers' code have a bound of their own.
"$PX" policy show --preset untrusted | jq -c '.["file-size"]'
"$PX" policy show --preset task | jq -c '.["file-size"]'
