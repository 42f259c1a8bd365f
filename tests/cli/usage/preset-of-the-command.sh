# Words of the command are not px's.
"$PX" exec echo --preset nosuch --memory 12q -h
