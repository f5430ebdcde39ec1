! Sections with gaps as arguments, of which the halves of a procedure would get a copy each.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  integer :: u(2, 0:n + 1) = 1, v(2, 0:n + 1) = 2, w(400) = 1
contains
  subroutine exchange(a, m)
    integer, intent(in) :: m
    integer :: a(0:m + 1), requests(2)

    call MPI_Irecv(a(m + 1), 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(a(1), 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  end subroutine exchange

  subroutine add(a, b, m)
    integer, intent(in) :: m
    integer :: a(m), b(m)

    call MPI_Allreduce(a, b, m, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  end subroutine add

  subroutine both(a, b, m)
    integer, intent(in) :: m
    integer :: a(m), b(m)

    call add(a, b, m)
  end subroutine both

  subroutine work()
    integer :: i

    do i = 1, 400
      w(i) = w(i) + i
    end do
  end subroutine work
end module grid

program copied_arguments
  use grid
  implicit none
  integer :: step

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do step = 1, 3
    u(1, :) = rank + step
    call exchange(u(1, :), n)
    call work()
    v(2, :) = v(2, :) + u(1, n + 1)
    call add(u(1, :), v(1, :), n)
    call work()
    v(2, :) = v(2, :) + v(1, :)
    call both(u(2, :), v(1, :), n)
    call work()
    v(2, :) = v(2, :) + v(1, :)
  end do
  write (*, '(i4,3i12)') rank, sum(u), sum(v), sum(w)
  call MPI_Finalize(ierr)
end program copied_arguments
