# What is copied into a box is what was named, and what is copied out goes there: a link that an earlier box may have left is refused,
# not followed.
trap '"$PX" box stop --all' EXIT
"$PX" box start --name cl
mkdir ws hostsecret && echo key >hostsecret/key && echo plain >ws/plain
"$PX" exec -v "$PWD/ws:/w" -c 'ln -s ../hostsecret /w/build; ln -s ../hostsecret/key /w/key'
says "$PX" box copy ws/build cl:/tmp
says "$PX" box copy ws/build/ cl:/tmp
says "$PX" box copy ws/key cl:/tmp/key
"$PX" box copy ws cl:/tmp
"$PX" box exec cl -c 'cd /tmp; ls; cat ws/plain; readlink ws/key; cat ws/key 2>/dev/null || echo nothing'
"$PX" box exec cl -c 'echo 1 >/tmp/new; echo 1 >/tmp/key'
says "$PX" box copy cl:/tmp/key ws/build
says "$PX" box copy cl:/tmp/new ws/build/
says "$PX" box copy cl:/tmp/new ws/build/new
says "$PX" box copy cl:/tmp/key ws/key
"$PX" box copy cl:/tmp/new ws
ls hostsecret ws
cat hostsecret/key ws/new
