! WRITE into a component, and into a part of an element.
program text_in_component
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr, i, step
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  type note
    character(8) :: text = 'abcdefgh'
  end type
  type(note) :: t
  character(8) :: names(4) = 'abcdefgh'
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i=0, n + 1)]
  do step = 1, 3
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    write (t%text, '(i8)') int(u(n + 1)) + step
    do i = 1, n
      r(i) = r(i) + ichar(t%text(8:8)) + ichar(t%text(7:7))
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    write (names(3)(2:8), '(i7)') int(u(n + 1)) + step
    do i = 1, n
      w(i) = w(i) + ichar(names(3)(8:8)) + ichar(names(3)(7:7))
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(w)
  call MPI_Finalize(ierr)
end program text_in_component
