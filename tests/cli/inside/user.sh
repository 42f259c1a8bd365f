"$PX" exec --user 1500 -c 'id -u; id -g; id -un; touch ~/f /tmp/f && echo writable'
"$PX" exec --user 1500:1600 -c 'id -u; id -g; stat -c %u:%g ~'
"$PX" exec -u 65533 -- id -u
