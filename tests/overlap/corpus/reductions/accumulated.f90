program accumulated
  use mpi
  implicit none
  integer, parameter :: n = 600
  real(8) :: u(n, 0:9), v(n, 0:9), e, most, most_of_all, total
  integer :: rank, ranks, ierr, i, j, t, counted, furthest
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  v = 0
  do j = 0, 9
    do i = 1, n
      u(i, j) = mod(i * 3 + j * 7 + rank * 5, 11) * 0.1d0
    end do
  end do
  u(40, 3 + rank) = sqrt(-1 - u(1, 1))
  do t = 1, 6
    most = -0.5d0
    most_of_all = 0
    total = 0
    counted = 0
    furthest = -1
    call MPI_Sendrecv(u(1, 8), n, MPI_DOUBLE_PRECISION, mod(rank + 1, ranks), 1, u(1, 0), n, MPI_DOUBLE_PRECISION, &
        mod(rank + ranks - 1, ranks), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    do j = 1, 8
      do i = 2, n - 1
        v(i, j) = 0.25d0 * (u(i, j - 1) + u(i, j) + u(i - 1, j) + u(i + 1, j))
        e = abs(v(i, j) - u(i, j))
        if (e > most) most = e
        if (e > 0.1d0) then
          counted = counted + 1
          furthest = max(furthest, i + j)
        end if
      end do
    end do
    do j = 1, 8
      do i = 2, n - 1
        most_of_all = max(most_of_all, u(i, j - 1))
        total = total + u(i, j - 1)
      end do
    end do
    u(2:n - 1, 1:8) = v(2:n - 1, 1:8)
    print "(2i3, 3z17.16, 2i8)", rank, t, most, most_of_all, total, counted, furthest
  end do
  call MPI_Finalize(ierr)
end program
