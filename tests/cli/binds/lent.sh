# Root's files where owners cannot be mapped (overlayfs: the root of every container). For reading they are what every user may read, for
# writing they belong to the box until it ends, and then to root again.
as_root
need jq
mkdir low up work m
cat >inside.sh <<'INSIDE'
. "$1/lib.sh"
mount -t overlay overlay -o lowerdir=low,upperdir=up,workdir=work m 2>/dev/null || skip 'no overlay can be mounted here'
cd m
mkdir d && echo open >d/open && (umask 077 && echo closed >d/closed)
ask='cat /x/open; cat /x/closed 2>/dev/null || echo "may not read"; touch /x/new 2>/dev/null || echo "may not write"; stat -c "%U %a" /x/open'
"$PX" exec -v "$PWD/d:/x:ro" -c "$ask"
"$PX" --json exec -v "$PWD/d:/x:ro" -- true | jq -r '.isolation.missing[] | select(startswith("owners"))'
chmod 700 d
says "$PX" exec -v "$PWD/d:/x:ro" -- true
chmod 755 d
echo "-- written"
"$PX" exec --work-dir "$PWD/d" -c 'cat closed; echo more >>open; mkdir sub; echo y >sub/y; ln -s /etc/passwd link; cp -a open copy; chmod 600 sub/y; stat -c %u closed'
"$PX" --json exec -v "$PWD/d:/x" -- true | jq -r '.isolation.missing[] | select(startswith("owners"))'
find d -printf '%P %u:%g %y %m\n' | LC_ALL=C sort
stat -c '%U %a' /etc/passwd
echo "-- one in the other"
"$PX" exec -v "$PWD/d:/x" -v "$PWD/d/sub:/x/sub:ro" -c 'cat /x/sub/y; echo z >/x/z; (echo n >/x/sub/n) 2>/dev/null || echo "may not write"'
"$PX" exec -v "$PWD/d/closed:/f" -c 'echo more >>/f; cat /f'
stat -c %u d/closed d/z
echo "-- of another user"
mkdir other && chown 1234:1234 other
says "$PX" exec -v "$PWD/other:/x" -- true
chmod 777 other && "$PX" exec -v "$PWD/other:/x" -- touch /x/mine && stat -c %u other
echo "-- a box that stays"
"$PX" -q box start --name lent --work-dir "$PWD/d"
[ "$(stat -c %u d)" != 0 ] && echo "it is lent"
says "$PX" exec -v "$PWD/d:/x" -- true
"$PX" exec -v "$PWD/d:/x:ro" -c 'head -n 1 /x/open; touch /x/new 2>/dev/null || echo "may not write"'
"$PX" box exec lent -c 'echo from the box >box'
"$PX" -q file write --root "x=$PWD/d:rw" x/in/made --content 'by the file tools
' >/dev/null
"$PX" box exec lent -c 'echo and the box >>in/made; touch in/beside; cat in/made'
"$PX" -q box stop lent
stat -c '%u %n' d d/box
echo "-- px is killed"
day=$(unique)
"$PX" exec --work-dir "$PWD/d" -c "echo now >killed; exec sleep $day" &
until_filled d/killed
kill -KILL $!
wait $! 2>/dev/null || :
until_gone "sleep $day"
[ "$(stat -c %u d)" != 0 ] && echo "still the box's"
"$PX" exec --work-dir "$PWD/d" -- cat killed
find d ! -user root
INSIDE
unshare --mount bash -eu inside.sh "$1" >out || exit $?
sed "s,$PWD,DIR," out
