load "plots/common.gp"
set output "plots/dcuda.svg"
set style data histograms
set style histogram clustered gap 2
set style fill solid 0.8 border -1
set ylabel "overloaded, of the time of all GPUs"
set yrange [0:*]
set y2label "slowdown"
set y2range [0:1.6]
set y2tics 0, 0.2, 1.6
set key top right
plot "data/dcuda.dat" using 3:xtic(sprintf("%s, %s s", strcol(2), strcol(1))) title "overloaded", \
  "" using 4 axes x1y2 title "slowdown"
