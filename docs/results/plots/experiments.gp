load "plots/common.gp"
set terminal svg size 760,460 font "sans-serif,12" background "white"
set output "plots/experiments.svg"
set lmargin 38
set title "tandem over the paper's system: median, 95 % interval\nright of 1: tandem is better"
set logscale x 2
set xrange [0.12:8]
set xtics ("1/8" 0.125, "1/4" 0.25, "1/2" 0.5, "1" 1, "2" 2, "4" 4, "8" 8)
set yrange [-0.5:15.5] reverse
set ytics
unset grid
set grid xtics lc rgb "#dddddd"
set arrow from 1, graph 0 to 1, graph 1 nohead lw 1 lc rgb "#888888"
unset key
plot "data/experiments.dat" using 2:0:3:4:ytic(1) with xerrorbars lw 2 pt 7 ps 0.7 lc rgb "#1f6fb4"
