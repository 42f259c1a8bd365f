# What is copied into a box is what was named: a link that an earlier box may have left is refused, not followed.
trap '"$PX" box stop --all' EXIT
"$PX" box start --name cl
mkdir ws hostsecret && echo key >hostsecret/key && echo plain >ws/plain
"$PX" exec -v "$PWD/ws:/w" -c 'ln -s ../hostsecret /w/build; ln -s ../hostsecret/key /w/key'
says "$PX" box copy ws/build cl:/tmp
says "$PX" box copy ws/build/ cl:/tmp
says "$PX" box copy ws/key cl:/tmp/key
"$PX" box copy ws cl:/tmp
"$PX" box exec cl -c 'cd /tmp; ls; cat ws/plain; readlink ws/key; cat ws/key 2>/dev/null || echo nothing'
