# What is applied is what the command would have done to the directory itself.
need_changes
make() { mkdir -p "$1/d/e" && printf '1\n2\n' >"$1/f" && echo x >"$1/d/x" && echo y >"$1/d/e/y" && ln -s f "$1/l"; }
make "$TMP/a"
make "$TMP/b"
todo='cd /workspace && echo 3 >>f; rm -r d; mkdir -p d n/m; echo n >n/m/new; ln -sfn n l; chmod 700 f; mkdir -m 555 closed; mv f g; ln -s ../../../../etc/passwd out; id -u'
"$PX" exec --work-dir "$TMP/a" -c "$todo"
"$PX" exec --changes "$TMP/b" --apply -c "$todo" 2>"$TMP/err"
grep -v '^px: \(added\|deleted\|modified\)' "$TMP/err"
for tree in a b; do (cd "$TMP/$tree" && find . -printf '%p %y %m %U:%G %l\n' | LC_ALL=C sort >"$TMP/list.$tree"); done
diff "$TMP/list.a" "$TMP/list.b" && diff -r --no-dereference "$TMP/a" "$TMP/b" && echo same
find "$TMP/b" -name '.px-*'
try "$PX" -q exec --changes "$TMP/b" --apply -c 'cd /workspace; echo half >>g; exit 3'
cat "$TMP/b/g"
"$PX" --json exec --timeout 300ms --changes "$TMP/b" --apply -c 'cd /workspace; echo cut >>g; sleep 60' >"$TMP/json" || jq -c '[.status, .changes_applied, .hints, [.changed_files[].path]]' "$TMP/json"
cat "$TMP/b/g"
