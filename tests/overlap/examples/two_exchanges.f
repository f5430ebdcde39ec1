c     Both directions of an exchange go through the same two buffers, one after the other.
      program both
      implicit none
      include 'mpif.h'
      integer nx, ny
      parameter (nx = 60, ny = 40)
      double precision u(0:nx+1, 0:ny+1), v(0:nx+1, 0:ny+1)
      common /fields/ u, v
      integer rank, size, north, south, step, i, j, ierr
      common /ranks/ rank, size, north, south
      double precision s

      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
      north = rank + 1
      south = rank - 1
      if (rank .eq. size - 1) north = -1
      do j = 0, ny + 1
         do i = 0, nx + 1
            u(i, j) = mod(i * 3 + j * 5 + rank, 29)
            v(i, j) = 0.0d0
         end do
      end do
      do step = 1, 3
         call exchange
         do j = 1, ny
            do i = 1, nx
               v(i, j) = 0.25d0 * (u(i-1, j) + u(i+1, j)
     &                           + u(i, j-1) + u(i, j+1))
            end do
         end do
         do j = 1, ny
            do i = 1, nx
               u(i, j) = v(i, j)
            end do
         end do
      end do
      s = 0.0d0
      do j = 0, ny + 1
         do i = 0, nx + 1
            s = s + u(i, j)
         end do
      end do
      write (*, '(i4,z17.16)') rank, s
      call mpi_finalize(ierr)
      end

      subroutine exchange
      implicit none
      include 'mpif.h'
      integer nx, ny
      parameter (nx = 60, ny = 40)
      double precision u(0:nx+1, 0:ny+1), v(0:nx+1, 0:ny+1)
      common /fields/ u, v
      integer rank, size, north, south
      common /ranks/ rank, size, north, south
      double precision buf(nx), buf1(nx)
      integer request, status(MPI_STATUS_SIZE), i, ierr

c     To the north.
      if (south .ge. 0) then
c        overlap: start-earlier
         call mpi_irecv(buf1, nx, MPI_DOUBLE_PRECISION, south, 1,
     &                  MPI_COMM_WORLD, request, ierr)
      end if
      if (north .ge. 0) then
         do i = 1, nx
            buf(i) = u(i, ny)
         end do
         call mpi_send(buf, nx, MPI_DOUBLE_PRECISION, north, 1,
     &                 MPI_COMM_WORLD, ierr)
      end if
      if (south .ge. 0) then
         call mpi_wait(request, status, ierr)
         do i = 1, nx
            u(i, 0) = buf1(i)
         end do
      end if

c     To the south.
      if (north .ge. 0) then
c        overlap: start-earlier
         call mpi_irecv(buf1, nx, MPI_DOUBLE_PRECISION, north, 2,
     &                  MPI_COMM_WORLD, request, ierr)
      end if
      if (south .ge. 0) then
         do i = 1, nx
            buf(i) = u(i, 1)
         end do
         call mpi_send(buf, nx, MPI_DOUBLE_PRECISION, south, 2,
     &                 MPI_COMM_WORLD, ierr)
      end if
      if (north .ge. 0) then
         call mpi_wait(request, status, ierr)
         do i = 1, nx
            u(i, ny + 1) = buf1(i)
         end do
      end if
      end
