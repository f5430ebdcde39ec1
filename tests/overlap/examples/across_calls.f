c     A block goes to the next rank at the end of every call; the buffer is only filled again in the next one.
      program calls
      implicit none
      include 'mpif.h'
      integer n
      parameter (n = 2000)
      double precision u(n), w(n), s
      common /state/ u, w
      integer rank, size, k, i, ierr
      common /ranks/ rank, size

      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
      do i = 1, n
         u(i) = mod(i * 5 + rank, 67)
         w(i) = 0.0d0
      end do
      do k = 1, 6
         call sweep(k)
         do i = 2, n
            w(i) = 0.5d0 * w(i-1) + 0.25d0 * u(i)
         end do
      end do
      s = 0.0d0
      do i = 1, n
         s = s + u(i) + w(i)
      end do
      write (*, '(i4,z17.16)') rank, s
      call mpi_finalize(ierr)
      end

      subroutine sweep(k)
      implicit none
      include 'mpif.h'
      integer k, n
      parameter (n = 2000)
      double precision u(n), w(n), buf(n)
      common /state/ u, w
      integer rank, size, i, ierr, status(MPI_STATUS_SIZE)
      common /ranks/ rank, size

      if (rank .gt. 0) then
         call mpi_recv(buf, n, MPI_DOUBLE_PRECISION, rank - 1, k,
     &                 MPI_COMM_WORLD, status, ierr)
         do i = 1, n
            u(i) = 0.5d0 * u(i) + 0.25d0 * buf(i)
         end do
      end if
      do i = 2, n
         u(i) = 0.5d0 * u(i) + 0.25d0 * u(i-1)
      end do
      if (rank .lt. size - 1) then
         do i = 1, n
            buf(i) = u(i)
         end do
c        overlap: nonblocking
         call mpi_send(buf, n, MPI_DOUBLE_PRECISION, rank + 1, k,
     &                 MPI_COMM_WORLD, ierr)
      end if
      end
