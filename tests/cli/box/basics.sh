# A box that stays: started, used, looked at, ended.
trap '"$PX" box stop --all' EXIT
"$PX" box list
"$PX" box start --name build
"$PX" box exec build -- sh -c 'echo kept >/tmp/file'
"$PX" box exec build -- cat /tmp/file
"$PX" box exec build -c 'echo $0 $1' word
"$PX" box start --name other -e NAME=value -w /tmp
"$PX" box exec other -c 'echo $NAME; pwd; cat /tmp/file' || echo "exit $?"
"$PX" box list
"$PX" box show build
"$PX" box stop build
"$PX" box list
"$PX" box start | sed 's/[0-9a-f]\{8\}$/########/'
"$PX" box stop --all
"$PX" box list
ls "$HOME/.px/run/boxes"
