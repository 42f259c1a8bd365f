mkdir "$TMP/project"
chmod 755 "$TMP/project"
echo main >"$TMP/project/f"
"$PX" exec --work-dir "$TMP/project" -c 'pwd; cat f; echo new >g'
cat "$TMP/project/g"
"$PX" exec --work-dir "$TMP/project" --work-target /srv/app -c 'pwd; cat f'
"$PX" exec --work-dir "$TMP/project" --work-target /tmp/app -c 'pwd; cat f'
"$PX" exec --preset session --work-dir "$TMP/project" -c 'pwd; cat ~/f'
cd "$TMP/project"
"$PX" exec --work-dir . -w /tmp -c 'pwd; cat /workspace/f'
