# What a command did to a directory: named, shown, and dropped.
need_changes
mkdir -p "$TMP/work/sub/deep" "$TMP/work/old/in"
cd "$TMP/work"
printf 'a\nb\nc\n' >f && echo x >sub/g && echo y >sub/deep/h && ln -s f link && echo z >old/in/z && echo k >tool && printf 'bin\0ary' >bin
listing . >"$TMP/before"
"$PX" --json exec --changes . -c 'cd /workspace && pwd && echo d >>f; rm sub/g; rm -r old; mkdir old; echo n >old/new; ln -sfn /etc/passwd link
    chmod 755 tool; mkdir -p e/mpty; printf "\0\0" >bin; touch sub; mv sub/deep/h sub/moved; mkfifo pipe; printf end >"a b"' >"$TMP/json"
jq -r '.stdout, (.changed_files[] | .kind + " " + .path + (if .link then " (link)" else "" end)), .diff, .diff_truncated, .changes_applied, .changes_kept' "$TMP/json"
listing . | diff "$TMP/before" - && echo 'nothing changed'
"$PX" --json exec --changes . -c true | jq -c '[.changed_files, .diff]'
"$PX" --json exec -c true | jq -c '[.changed_files, .diff]'
