! A matrix is transposed and its rows are collected; both transfers have work to hide behind.
program transpose_rows
  use mpi_f08
  implicit none
  integer, parameter :: n = 512, most = 8
  real(8) :: rows(n * most), columns(n * most), all_rows(n * most), work(n)
  integer :: counts(most), starts(most)
  integer :: rank, size, i, r

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  do i = 1, n * most
    rows(i) = mod(i * 11, 103) + 0.5d0 * rank
    columns(i) = 0d0
    all_rows(i) = 0d0
  end do
  work = 1d0
  do r = 1, size
    counts(r) = 10 * r
    starts(r) = 100 * (r - 1)
  end do
  ! overlap: nonblocking
  call MPI_Alltoall(rows, n, MPI_DOUBLE_PRECISION, columns, n, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
  do i = 2, n
    work(i) = 0.5d0 * work(i) + work(i - 1)
  end do
  do i = 1, n
    columns(i) = columns(i) + work(i)
  end do
  ! overlap: nonblocking
  call MPI_Allgatherv(columns, counts(rank + 1), MPI_DOUBLE_PRECISION, all_rows, counts, starts, &
                      MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
  do i = 2, n
    work(i) = 0.25d0 * work(i) + work(i - 1)
  end do
  print '(i4,3z17.16)', rank, sum(all_rows), sum(columns), sum(work)
  call MPI_Finalize()
end program transpose_rows
