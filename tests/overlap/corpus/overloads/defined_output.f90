! Output of a derived type that calls a procedure.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
end module grid

module printing
  use grid
  type note
    real(8) :: v = 1
  contains
    procedure :: put
    generic :: write(formatted) => put
  end type note
contains
  subroutine put(dtv, unit, iotype, v_list, iostat, iomsg)
    class(note), intent(in) :: dtv
    integer, intent(in) :: unit, v_list(:)
    character(*), intent(in) :: iotype
    integer, intent(out) :: iostat
    character(*), intent(inout) :: iomsg
    write (unit, '(z17.16)', iostat=iostat) u(n + 1)
    w(1) = w(1) + u(n + 1)
  end subroutine put
end module printing

program defined_output
  use printing
  implicit none
  integer :: i, step
  type(note) :: x

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i=0, n + 1)]
  do step = 1, 3
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    write (*, *) x
    do i = 1, n
      r(i) = r(i) + w(1)
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(w)
  call MPI_Finalize(ierr)
end program defined_output
