load "plots/common.gp"
set output "plots/muxflow.svg"
set style data histograms
set style histogram clustered gap 2
set style fill solid 0.8 border -1
set ylabel "P99 of the service, ms"
set yrange [0:*]
set y2label "oversold, seconds a second; GPU in use"
set y2range [0:1.6]
set y2tics 0, 0.2, 1
set bmargin 4
set key top right
plot "data/muxflow.dat" using 3:xtic(sprintf("%s\n%d evicted", strcol(1), $7)) title "P99", \
  "" using 5 axes x1y2 title "oversold", \
  "" using 6 axes x1y2 title "GPU in use"
