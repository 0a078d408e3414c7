set terminal svg size 640,320 font "sans-serif,12" background "white"
set grid y lc rgb "#dddddd"
set key top left
set border 3
set tics nomirror
