load "plots/common.gp"
set terminal svg size 760,320 font "sans-serif,12" background "white"
set output "plots/dcuda.svg"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.8 border -1
set xlabel "gap between two starts, s"
set yrange [0:*]
set key top right reverse Left
set multiplot layout 1, 2
set title "overloaded, % of the time of all GPUs"
plot "data/dcuda.dat" every 3::0 using (100 * $3):xtic(1) title "least-loaded", \
  "" every 3::1 using (100 * $3) title "by demand", \
  "" every 3::2 using (100 * $3) title "dcuda"
set title "slowdown (1: as fast as alone)"
set yrange [0:1.8]
plot "data/dcuda.dat" every 3::0 using 4:xtic(1) title "least-loaded", \
  "" every 3::1 using 4 title "by demand", \
  "" every 3::2 using 4 title "dcuda"
unset multiplot
