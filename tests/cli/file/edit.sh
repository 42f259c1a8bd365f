# One place, shown as a diff before or changed after.
mkdir w && seq 9 >w/n.txt
f() { "$PX" file "$@" --root w=w:rw; }
f edit w/n.txt --old 5 --new $'five\nand a half' --dry-run
seq 9 | cmp - w/n.txt
f edit w/n.txt --old 5 --new $'five\nand a half'
cat w/n.txt
"$PX" file edit --root w=w:rw --input - <<'JSON'
{"path": "w/n.txt", "edits": [{"old_text": "five\n", "new_text": ""}, {"oldText": "and a half", "newText": "5"}]}
JSON
seq 9 | cmp - w/n.txt
says f edit w/n.txt --old '' --new x
says f edit w/n.txt --old 1
