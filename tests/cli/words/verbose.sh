"$PX" -v exec -- true
"$PX" -q exec -c 'exit 0'
