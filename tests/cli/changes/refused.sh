# Words that do not go together, and what cannot be worked on.
mkdir "$TMP/work"
echo x >"$TMP/file"
for words in --apply --discard --keep "--changes $TMP/work --apply --discard" "--changes $TMP/work --work-dir $TMP/work" "--changes $TMP/file" \
    "--changes $TMP/none" "--changes $TMP/work --keep=../x" "--changes $TMP/work --keep=UPPER" "--changes= " "--changes $TMP/work -v $TMP/work:/workspace" \
    "--changes $TMP/work --work-target /usr/share" "--changes $TMP/work --runtime runc"; do
    # shellcheck disable=SC2086
    says env PX_HOME="$TMP/home" "$PX" exec $words -- echo RAN | head -n 1 | sed "s,$TMP,TMP,g"
done
ls -A "$TMP/work"
