# Where boxes are written down, and places that will not do.
trap '"$PX" box stop --all' EXIT
says env -u HOME "$PX" box list
says env PX_HOME=relative "$PX" box list
says env PX_HOME=/nosuch/dir/px "$PX" box start
env PX_HOME=/nosuch/dir/px "$PX" box list
mkdir -m 777 open && chmod 777 open
says env PX_HOME="$TMP/open" "$PX" box start
mkdir -m 700 mine
PX_HOME=$TMP/mine "$PX" box start --name m
"$PX" box list | sed 1d
PX_HOME=$TMP/mine "$PX" box list | sed 1d | cut -d' ' -f1
find mine -printf '%m %P\n' | sort -k2
PX_HOME=$TMP/mine "$PX" box stop m
find mine | sort
