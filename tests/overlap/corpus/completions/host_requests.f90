! Requests of the host, which a contained procedure completes, and which the host waits for again.
program host_requests
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr, i, step, requests(2), one
  real(8) :: u(0:n + 1), big(400) = 1

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i = 0, n + 1)]
  requests = 12345
  one = 12345
  do step = 1, 3
    call exchange()
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    do i = 1, 400
      big(i) = big(i) + i
    end do
    u(1:n) = u(1:n) + 0.25d0 * u(2:n + 1)
    call other()
    call MPI_Wait(one, MPI_STATUS_IGNORE, ierr)
    u(1:n) = u(1:n) + 0.25d0 * u(2:n + 1)
  end do
  write (*, '(i4,2z17.16)') rank, sum(u), sum(big)
  call MPI_Finalize(ierr)
contains
  subroutine exchange()
    call MPI_Irecv(u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  end subroutine exchange

  subroutine other()
    call MPI_Irecv(u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, one, ierr)
    call MPI_Send(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, ierr)
    call MPI_Wait(one, MPI_STATUS_IGNORE, ierr)
    do i = 1, 400
      big(i) = big(i) + i
    end do
  end subroutine other
end program host_requests
