# px pack image: what is refused before anything is built, and in which words.
need git
export PX_HOME=$TMP/home HOME=$TMP GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
mkdir "$TMP/demo"
cd "$TMP/demo"
clean() { sed -E "s,$TMP,TMP,g; s,[0-9a-f]{64},ID,g"; }
says "$PX" pack
says "$PX" pack app
says "$PX" pack image extra
says "$PX" pack image --out
says "$PX" pack image | clean
"$PX" init >/dev/null
says "$PX" pack image | clean
(try "$PX" --json pack image) | clean
"$PX" -q sync
says "$PX" pack image --push
PX_REGISTRY_USERNAME=me says "$PX" pack image --push --tag localhost:1/a/b:1
says "$PX" pack image --tag 'Not A Name'
says "$PX" pack image --compression zip
says "$PX" pack image --compression zstd
says "$PX" pack image --format zip --out x
git init -q .
(try "$PX" pack image) 2>&1 | clean
git -c user.name=a -c user.email=a@b add -A
printf 'x\n' >'a file'
(try "$PX" --json pack image) | clean
printf 'gitdir: /etc\n' >"$TMP/pointer"
rm -rf .git && mv "$TMP/pointer" .git
(try "$PX" pack image) 2>&1 | clean
ls -A
